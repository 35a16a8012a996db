"""Outputs of every kind are read column by column: what is broken in them is caught, what is right is not accused."""

import base64
import dataclasses
import math
import struct
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ledgerwood import Adjacency, Budget
from ledgerwood.errors import AuditFailed, PrivacyWarning
from ledgerwood.verification import audit
from ledgerwood.verification.black_box.draws import learned

ONE = Budget(epsilon=1.0, delta=0.0, adjacency=Adjacency.ADD_REMOVE)


class Named(NamedTuple):
    word: str
    value: float


@dataclasses.dataclass
class Record:
    word: str
    value: float


@dataclasses.dataclass
class Fitted:
    """An estimator that is a dataclass: what its fit sets is no field."""

    epsilon: float = 1.0

    def fit(self, value):
        self.mean_ = value
        return self


def _each(make):
    return lambda x, rng: [make(value) for value in x.tolist()]


SHAPES = {
    "estimators that are dataclasses": _each(lambda v: Fitted().fit(v)),
    "tuples": _each(lambda v: ("text", v)),
    "arrays of texts": lambda x, rng: np.array([("text", v) for v in x.tolist()]),
    "arrays of objects": lambda x, rng: np.array([("text", v) for v in x.tolist()], dtype=object),
    "mappings": _each(lambda v: {"word": "text", "value": v}),
    "columns by name": lambda x, rng: {"word": ["text"] * len(x), "value": x},
    "nested tuples": _each(lambda v: (("a", (1, v)), None)),
    "named tuples": _each(lambda v: Named("text", v)),
    "records": _each(lambda v: Record("text", v)),
    "structured arrays": lambda x, rng: np.array([("t", v) for v in x], dtype=[("word", "U5"), ("value", "f8")]),
    "pandas": lambda x, rng: pd.DataFrame({"word": "text", "value": x}),
    "pandas with gaps": lambda x, rng: pd.DataFrame({"value": pd.array(x, dtype="Float64")}),
    "polars": lambda x, rng: pl.DataFrame({"word": ["text"] * len(x), "value": x}),
    "rows of polars": lambda x, rng: pl.DataFrame({"word": ["text"] * len(x), "value": x}).rows(named=True),
    "three digits": _each(lambda v: f"{v:.3f}"),
    "all digits": lambda x, rng: x.astype(str),
    "a sentence": _each(lambda v: f"the mean is {v:.2f} (noisy)"),
    "JSON": _each(lambda v: f'{{"mean": {v!r}, "kind": "z"}}'),
    "bytes of digits": _each(lambda v: f"{v:.4f}".encode()),
    "packed bytes": _each(lambda v: struct.pack("<d", v)),
    "packed bytes, numpy": lambda x, rng: np.array([struct.pack(">d", v) for v in x.tolist()]),
    "hexadecimal": _each(float.hex),
    "several lengths": lambda x, rng: [[v] * k for v, k in zip(x.tolist(), rng.integers(1, 4, len(x)), strict=True)],
    "numbers or None": lambda x, rng: [None if rng.random() < 0.1 else v for v in x.tolist()],
    "numbers or texts": lambda x, rng: ["halt" if rng.random() < 0.1 else v for v in x.tolist()],
    "masked": lambda x, rng: np.ma.masked_array(x, rng.random(len(x)) < 0.1),
    "beside NaN and infinity": lambda x, rng: np.stack([np.full(len(x), np.nan), x, np.full(len(x), np.inf)], axis=1),
    "arrays of one number": _each(lambda v: np.array([v])),
    "arrays of no dimension": _each(np.array),
    "huge integers": _each(lambda v: 2**100 + round(2**20 * v)),
    "huge integers as texts": _each(lambda v: str(2**100 + round(2**20 * v))),
    "subnormal numbers": lambda x, rng: x * 1e-320,
    "the largest numbers": lambda x, rng: x * 1e307,
    "times": lambda x, rng: (x * 1e9).astype("datetime64[ns]"),
}  # fmt: skip


def released(shape, scale):
    return lambda dataset, n, rng: SHAPES[shape](dataset + rng.laplace(scale=scale, size=n), rng)


@pytest.mark.slow_after(3)  # an audit of each shape
@pytest.mark.filterwarnings("error", "ignore::ledgerwood.errors.PrivacyWarning")
@pytest.mark.parametrize("shape", SHAPES)
def test_half_the_noise_is_caught_in_every_shape(shape):
    found = audit(released(shape, 0.5), (0.0, 1.0), claim=ONE, n=2_000, rng=1, learners="light")
    assert found.rejected
    assert 1.5 < found.epsilon_lower < 2.3


@pytest.mark.slow  # a rate of error needs many audits
def test_right_noise_is_accused_no_more_often_than_alpha_says_whatever_its_shape():
    """Two seeds a shape at .05: 3.2 of 64 by chance at most, and four standard deviations."""
    runs, accused = 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        for shape in SHAPES:
            for seed in range(2):
                sampler = released(shape, 1.0)
                found = audit(sampler, (0.0, 1.0), claim=ONE, n=110, rng=seed, learners="light")
                runs, accused = runs + 1, accused + found.rejected
    assert accused <= 0.05 * runs + 4.0 * math.sqrt(0.0475 * runs)


def test_sets_are_read_item_by_item():
    def chosen(dataset, n, rng):
        return [{"big", "any"} if v > 0.5 else {"small"} for v in (dataset + rng.laplace(scale=0.3, size=n)).tolist()]

    assert audit(chosen, (0.0, 1.0), claim=ONE, n=2_000, rng=1).rejected


# ------------------------------------------------------------------------------------------------ what cannot be read


def token(rng):
    return base64.b64encode(rng.bytes(9)).decode()


def test_texts_of_which_nothing_can_be_learned_are_refused_and_the_message_says_what_to_do():
    with pytest.raises(AuditFailed, match=r"texts have a distinct form.* Return their parts"):
        audit(lambda d, n, rng: ["".join(rng.choice(list("abcdefgh"), 12)) for _ in range(n)], (0.0, 1.0), claim=ONE,
              n=500, rng=1)  # fmt: skip


@pytest.mark.slow  # many audits
def test_a_column_of_such_texts_is_named_and_the_others_are_looked_at():
    def beside(dataset, n, rng):
        return [(token(rng), v) for v in (dataset + rng.laplace(scale=0.5, size=n)).tolist()]

    with pytest.warns(PrivacyWarning, match=r"did not look at all of the outputs: output\[0\]: "):
        found = audit(beside, (0.0, 1.0), claim=ONE, n=2_000, rng=1)
    assert found.rejected
    assert "output[0]" in found.notes[0]
    assert found.to_dict()["notes"] == list(found.notes)
    assert "note: output[0]" in str(found)


# -------------------------------------------------------------------------------- an output is read by itself, always


def test_how_an_output_is_read_does_not_depend_on_the_other_runs_of_its_call():
    rng = np.random.default_rng(5)
    kinds = [1.5, 7, "halt", "0.25", "x1", None, b"ab", (1.0, "a"), (2.0,), {"k": 3}, 2**80, math.nan, True, [1, [2]]]
    outputs = [kinds[place] for place in rng.integers(0, len(kinds), 400)]
    encoding = learned([(outputs[:200], 200), (outputs[200:], 200)])
    together = encoding(outputs, 400)
    for place in range(0, 400, 7):
        np.testing.assert_array_equal(encoding([outputs[place]], 1)[0], together[place])
    np.testing.assert_array_equal(encoding(outputs[::-1], 400), together[::-1])
    assert len({tuple(map(repr, row)) for row in together.tolist()}) == len(kinds)


@pytest.mark.parametrize("foreign", [(9.0, 1, 2), "never seen", None, 2**3000, object(), {"z": 1}, [[[]]], b"\xff\x00"])
def test_what_learning_never_saw_is_read_without_an_error(foreign):
    encoding = learned([([("a", 1.0), ("b", 2.0)], 2), ([("a", 3.0), ("b", 4.0)], 2)])
    assert encoding([foreign, ("a", 1.0)], 2).shape == (2, len(encoding.columns))
    plain = learned([(np.zeros((3, 2)), 3), (np.ones((3, 2)), 3)])
    assert np.isnan(plain(np.zeros((3, 5)), 3)[:, 0]).sum() == 0
    assert plain([foreign], 1).shape == (1, 2)


def test_large_integers_keep_every_bit():
    numbers = [2**200 + k for k in (0, 1, 2, 2**40, 2**150)]
    encoding = learned([(numbers, 5), (numbers, 5)])
    assert len({tuple(row) for row in encoding(numbers, 5).tolist()}) == 5


# ----------------------------------------------------------------------------------------------- outputs of one value


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, math.nan, math.inf, "none", None, (), (1.0, math.nan), b"", {}, 2**70, 5e-324])
@pytest.mark.parametrize("stop", ["never", "rejected"])
def test_outputs_of_one_value_have_a_bound_of_0_and_a_note(value, stop):
    found = audit(lambda dataset, n, rng: [value] * n, (0.0, 1.0), claim=ONE, n=500, rng=1, stop=stop)
    assert (found.epsilon_lower, found.rejected, found.bounds[0].assumption) == (0.0, False, "none")
    assert "outputs of both data sets were the same" in found.notes[0]
    assert found.scores is None


@pytest.mark.parametrize("numeric", ["ideal", "bitwise"])
def test_arrays_of_one_value_of_none_and_of_nan(numeric):
    for shape in ((), (1,), (3,), (0,), (2, 0)):
        for value in (0.0, math.nan):
            found = audit(
                lambda d, n, rng, shape=shape, value=value: np.full((n, *shape), value), (0.0, 1.0), claim=ONE, n=500,
                rng=1, numeric=numeric,
            )  # fmt: skip
            assert (found.epsilon_lower, found.rejected) == (0.0, False)


def test_pairs_of_which_none_differs_have_a_bound_of_0():
    found = audit(lambda dataset, n, rng: np.zeros(n), claim=ONE, n=500, rng=1)
    assert (found.epsilon_lower, found.rejected) == (0.0, False)
    assert found.notes


def test_a_right_stability_mechanism_is_audited_with_every_seed():
    """A noisy count is released if it is above a threshold that noise passes once in some thousand runs."""
    claim = Budget(epsilon=1.0, delta=1e-3, adjacency=Adjacency.ADD_REMOVE)

    def stable(dataset, n, rng):
        noisy = dataset + rng.laplace(size=n)
        return np.where(noisy > 1.0 + math.log(0.5 / 1e-3), noisy, math.nan)

    found = [audit(stable, (0.0, 1.0), claim=claim, n=150, rng=seed, learners="light") for seed in range(20)]
    assert not any(one.rejected for one in found)
    assert any(one.notes for one in found)


@pytest.mark.slow_after(1)  # many audits
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("other", [math.nan, math.inf, -math.inf, 0.0])
def test_a_column_without_numbers_does_not_break_the_others(other):
    """In all rows, and in all but a few."""
    for share in (1.0, 0.999):

        def beside(dataset, n, rng, share=share):
            return np.stack(
                [
                    np.where(rng.random(n) < share, other, 1.0), dataset + rng.laplace(scale=0.5, size=n),
                    rng.normal(size=n),
                ],
                axis=1,
            )  # fmt: skip

        assert audit(beside, (0.0, 1.0), claim=ONE, n=3_000, rng=2).rejected


def test_another_length_on_the_other_data_set_tells_them_apart():
    assert audit(lambda d, n, rng: rng.laplace(size=(n, 1 + int(d))), (0.0, 1.0), claim=ONE, n=500, rng=1).rejected
    ragged = audit(lambda d, n, rng: [[0.0] * int(k) for k in rng.integers(1, 3 + int(d), n)], (0.0, 1.0), claim=ONE,
                   n=2_000, rng=1)  # fmt: skip
    assert ragged.rejected


# ------------------------------------------------------------------------------------ noise that runs of a call share


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("order", [np.repeat, lambda x, k: np.tile(x, k), lambda x, k: np.sort(np.repeat(x, k))])
def test_noise_that_is_repeated_within_a_call_is_refused(times, order):
    def sharing(dataset, n, rng):
        return dataset + order(rng.laplace(size=-(-n // times)), times)[:n]

    with pytest.raises(AuditFailed, match="the runs of a call share noise"):
        audit(sharing, (0.0, 1.0), claim=ONE, n=3_000, rng=1)


@pytest.mark.parametrize("digits", [0, 2, 3])
def test_values_that_recur_by_themselves_are_no_repeated_noise(digits):
    for seed in range(2):
        audit(lambda d, n, rng: np.sort(np.round(d + rng.laplace(size=n), digits)), (0.0, 1.0), claim=ONE, n=3_000,
              rng=seed)  # fmt: skip
