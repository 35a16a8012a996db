"""The declared description of a table: what is accepted, what is refused, and its JSON."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.errors import InvalidParameter, SchemaError

FULL = Schema(
    features=(
        Numeric("length", 0, 1.5),
        Numeric("weight", -1.0, 2.0, missing=True),
        Categorical("sex", ("M", "F", "I")),
        Categorical("code", (1, 2, 3), missing=True),
        Categorical("flag", (True, False)),
    ),
    target=Numeric("rings", 1, 29),
)


WITH_WEIGHTS = """{
    "every": {"numeric": "a", "low": 0, "high": 1},
    "target": {"categorical": "y", "categories": ["x", "z"], "weights": %s}
}"""


@pytest.mark.parametrize(
    "schema",
    [
        FULL,
        Schema.uniform(-1.0, 1.0),
        Schema.uniform(0, 1, weight_bound=0.3),
        replace(FULL, weight_bound=8),
        Schema.uniform(0.0, 5.0, n_features=3, target=Categorical("y", ("no", "yes"))),
        Schema.uniform(0.0, 5.0, target=Categorical("y", ("no", "yes", "perhaps"), weights=(1, 5.5, 0.1))),
    ],
)
def test_a_schema_comes_back_from_its_json(schema):
    assert Schema.from_json(schema.to_json()) == schema


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"features": [{"numeric": "a"}]}', '{"features": [{"numeric": "a", "low": "0", "high": 1}]}',
        '{"every": {"categorical": "a", "categories": ["x"]}}',
        '{"features": [{"categorical": "a", "categories": []}]}',
        '{"features": [{"numeric": "a", "low": 0, "high": 1, "missing": "yes"}]}', '{"features": 3}',
        '{"features": [{"numeric": "a", "low": 0, "high": 1e999}]}',
        '{"features": [{"numeric": "a", "low": 0, "high": 1}], "weight_bound": "8"}',
        '{"features": [{"numeric": "a", "low": 0, "high": 1}], "weight_bound": 0}',
        '{"features": [{"numeric": "a", "low": 0, "high": 1, "weights": [1]}]}',
        '{"features": [{"categorical": "a", "categories": ["x"], "weights": [1]}]}',
        '{"every": {"numeric": "a", "low": 0, "high": 1}, "target": {"categorical": "y", "weights": [1, 0]}}',
        WITH_WEIGHTS % '"balanced"',
        WITH_WEIGHTS % "[1, 0]",
    ],
)  # fmt: skip
def test_text_that_is_not_a_schema_is_refused(text):
    with pytest.raises((SchemaError, InvalidParameter)):
        Schema.from_json(text)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (1, 0), (math.nan, 1), (0, math.inf), (-1.7e308, 1.7e308), ("0", 1), (True, 2)]
)
def test_a_range_must_be_finite_and_not_empty(low, high):
    with pytest.raises(InvalidParameter, match="of 'a'"):
        Numeric("a", low, high)


@pytest.mark.parametrize("categories", [(), ("x", "x"), (1, 1.0), (math.nan,), (None,), tuple(range(60_001))])
def test_categories_are_distinct_and_finitely_many(categories):
    with pytest.raises(InvalidParameter, match="of 'a'"):
        Categorical("a", categories)


def test_names_are_distinct_and_not_empty():
    with pytest.raises(SchemaError, match=r"\['a'\] occur more than once"):
        Schema(features=(Numeric("a", 0, 1), Categorical("a", ("x",))))
    for name in ("", 3):
        with pytest.raises(InvalidParameter, match="column name"):
            Numeric(name, 0, 1)


def test_a_schema_needs_features_or_one_range_for_all():
    with pytest.raises(SchemaError, match="0 features and every=None"):
        Schema()
    with pytest.raises(SchemaError, match="1 features and every=Numeric"):
        Schema(features=(Numeric("a", 0, 1),), every=Numeric("x", 0, 1))


def test_a_target_is_not_missing():
    with pytest.raises(SchemaError, match="'y' cannot be declared missing"):
        Schema.uniform(0, 1, target=Numeric("y", 0, 1, missing=True))


@pytest.mark.parametrize("bound", [0, -1, 2.0**-21, 2.0**20 + 1, math.nan, math.inf, True, "1"])
def test_a_weight_bound_is_a_number_within_bounds(bound):
    with pytest.raises(InvalidParameter, match="weight_bound"):
        Schema.uniform(0, 1, weight_bound=bound)


def test_a_weight_bound_is_kept():
    assert Schema.uniform(0, 1).weight_bound is None
    assert "weight_bound" not in Schema.uniform(0, 1).to_json()
    for schema in (Schema.uniform(0, 1, weight_bound=4), Schema.uniform(0, 1, n_features=2, weight_bound=4)):
        resolved = schema.resolved(2)
        assert type(resolved.weight_bound) is float
        assert resolved.weight_bound == 4.0


def test_a_uniform_schema_takes_the_number_of_columns():
    schema = Schema.uniform(0, 2)
    assert schema.resolved(3).features == (Numeric("x0", 0, 2), Numeric("x1", 0, 2), Numeric("x2", 0, 2))
    assert FULL.resolved(2) is FULL


def test_cells_are_what_splits_may_test():
    cells = FULL.cells(8)
    assert [cell.ordered for cell in cells] == [8, 8, 0, 0, 0]
    assert [cell.equality for cell in cells] == [(), (8,), (0, 1, 2), (0, 1, 2, 4), (0, 1)]
    assert (FULL.features[3].other_cell, FULL.features[3].missing_cell) == (3, 4)


@pytest.mark.parametrize("category", [2**53, -(2**60) - 1, 2.0**53, math.inf])
def test_a_number_that_a_float_cannot_tell_from_its_neighbours_is_no_category(category):
    with pytest.raises(InvalidParameter, match=r"of size below 2\*\*53, or a string"):
        Categorical("id", (1, category))


def test_a_string_that_numpy_would_cut_short_is_no_category():
    with pytest.raises(InvalidParameter, match="a string without NUL at its end"):
        Categorical("id", ("a", "b\0"))


@pytest.mark.parametrize("text", ["male", b"male", ""])
def test_one_text_is_no_list_of_categories(text):
    with pytest.raises(InvalidParameter, match=rf"write Categorical\('sex', \({re.escape(repr(text))}, \.\.\.\)\)"):
        Categorical("sex", text)


def test_the_categories_may_be_any_sequence_of_whole_texts():
    assert Categorical("sex", ["male"]).categories == ("male",)
    assert Categorical("sex", np.array(["male", "female"])).categories == ("male", "female")


@pytest.mark.parametrize("features", ["ab", b"ab", Numeric("a", 0, 1), ("a", "b"), 3])
def test_features_are_a_sequence_of_features(features):
    with pytest.raises((SchemaError, InvalidParameter), match="features"):
        Schema(features=features)


def test_a_second_category_is_not_taken_for_the_flag_of_missing_values():
    with pytest.raises(InvalidParameter, match="missing of 'sex'='female' must be True or False"):
        Categorical("sex", ("male",), "female")
    with pytest.raises(InvalidParameter, match="missing of 'age'='no' must be True or False"):
        Numeric("age", 0, 1, "no")


@pytest.mark.parametrize("high", [5e-324, 1e-305, 9.9e-301])
def test_a_range_whose_steps_are_no_numbers_is_refused(high):
    """Rows at its ends were placed by infinity times zero, which numpy warns of: a warning that told of a row."""
    with pytest.raises(InvalidParameter, match="a finite width of at least 1e-300"):
        Numeric("a", 0.0, high)
    assert Numeric("a", 0.0, 1e-300).high == 1e-300


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ((1.0,), "must be 2 numbers, one for each category"),
        ((1.0, 2.0, 3.0), "must be 2 numbers"),
        ((1.0, 0.0), "must be > 0"),
        ((1.0, -2.0), "must be > 0"),
        ((1.0, math.inf), "must be a finite real number"),
        ((1.0, math.nan), "must be a finite real number"),
        ((1.0, "2"), "must be a finite real number"),
        ((1.0, True), "must be a finite real number"),
        ((1.0, 1025.0), "the largest is at most 1,024 times the smallest"),
        (3.0, "must be a sequence"),
        ("balanced", "one public number for each category, such as"),
        ({"no": 1.0, "yes": 2.0}, "in the order of the categories"),
    ],
)
def test_weights_of_classes_are_public_numbers_one_for_each(weights, words):
    with pytest.raises(InvalidParameter, match=words):
        Categorical("y", ("no", "yes"), weights=weights)


def test_weights_of_classes_are_of_a_target():
    weighted = Categorical("y", ("no", "yes"), weights=[1, 4])
    assert weighted.weights == (1.0, 4.0)
    assert weighted.relative_weights == (0.25, 1.0)
    assert Categorical("y", ("no", "yes")).relative_weights == (1.0, 1.0)
    assert Categorical("y", ("no", "yes"), weights=(1.0, 1024.0)).relative_weights == (2.0**-10, 1.0)
    schema = Schema.uniform(0.0, 1.0, target=weighted)
    assert (schema.weighted, schema.class_weights) == (True, (1.0, 4.0))
    assert schema.resolved(3).class_weights == (1.0, 4.0)
    assert not FULL.weighted
    assert replace(FULL, weight_bound=2.0).weighted
    assert "weights" not in Schema.uniform(0.0, 1.0, target=Categorical("y", ("no", "yes"))).to_json()
    with pytest.raises(SchemaError, match="the feature 'y' has weights=.*weights are of a target's classes"):
        Schema(features=(weighted,), target=Numeric("z", 0, 1))
