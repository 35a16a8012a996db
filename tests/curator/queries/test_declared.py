"""A statistic from outside: its bounds hold whatever its function does, and nothing is told of a row."""

import io
import itertools
import math
import warnings
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Budget, Categorical, Ledger, Numeric, PrivacyUnit, Schema
from ledgerwood.accounting.ledger import GrantEntry
from ledgerwood.curator import ColumnTable, Curator, DeclaredStatistic, Table
from ledgerwood.curator.queries.declared import caveats_in
from ledgerwood.errors import InvalidParameter, PrivacyWarning, RoundViolation, SchemaError
from ledgerwood.mechanisms import BallShifts, BoxShifts, GaussianMechanism, SeededRandom
from ledgerwood.trainers.base.privacy import declared_in
from ledgerwood.verification import check_sensitivity, replay, verify_ledger

A, Z, R = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
EVERYBODY = np.empty(0, np.bool_)
AGE, KIND, Y = Numeric("age", 0.0, 8.0), Categorical("kind", ("u", "v")), Numeric("y", -1.0, 1.0)
SCHEMA = Schema(features=(AGE, KIND), target=Y)
STEP = 2.0**-10


def products(chunk):
    """(1, age / 8, y, age y / 8) in steps of 2**-10; a row with a missing value is worth nothing."""
    age, y = chunk["age"] / 8.0, chunk["y"]
    numbers = np.stack((np.ones_like(age), age, y, age * y), axis=1)
    numbers[np.isnan(numbers).any(axis=1)] = 0.0
    return (numbers / STEP).astype(np.int64)


def declared(function=products, **more):
    fields = {"name": "products", "declared_by": "tests 1.0", "columns": (AGE, Y), "most": (1024,) * 4, "exponent": -10}
    return DeclaredStatistic(function=function, **(fields | more))


def columns_of(rows):
    X = np.array([[age, kind] for age, kind, _ in rows], dtype=object).reshape(-1, 2)
    return ColumnTable.from_data(X, SCHEMA, y=np.array([y for *_, y in rows], dtype=np.float64))


def opened(query, table, adjacency=A, purpose=None, stddev=4.0):
    mechanism = GaussianMechanism(stddev=stddev)
    event = mechanism.event(query.sensitivity(adjacency), adjacency)
    ledger = Ledger(Budget(epsilon=1e4, delta=1e-2, adjacency=adjacency), unit=PrivacyUnit.ROW)
    curator = Curator(table, ledger.grant(event, purpose="all", delta=1e-3), SeededRandom(1))
    what = query.purpose("sums") if purpose is None else purpose
    return curator.open(event, purpose=what), mechanism, ledger


ROWS = st.lists(st.tuples(st.floats(-2, 10) | st.just(math.nan), st.sampled_from("uvw"), st.floats(-1, 1)), max_size=9)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(rows=ROWS, one_by_one=st.booleans(), coins=st.lists(st.booleans(), min_size=9, max_size=9))
def test_the_sums_are_what_plain_python_finds(rows, one_by_one, coins):
    expected = np.zeros(4, dtype=np.int64)
    for (age, _, y), coin in zip(rows, coins, strict=False):
        if coin and not math.isnan(age):
            held = min(max(age, 0.0), 8.0) / 8.0
            expected += [math.trunc(Fraction(v) * 1024) for v in (1.0, held, y, held * y)]
    query = declared(one_by_one=one_by_one)
    found = columns_of(rows).reader(query)(np.array(coins[: len(rows)], np.bool_)) if rows else expected
    assert found.dtype == np.int64
    assert found.tolist() == expected.tolist()


def wild(chunk):
    """Raises, returns nonsense or far too much, by the values of rows."""
    age, y = chunk["age"], chunk["y"]
    if len(age) == 1 and y[0] < -0.9:
        raise SystemExit(f"the secret is {age[0]}")
    if (y < -0.5).any():
        return np.full((len(age), 4), 0.5)
    if (y > 0.9).any():
        return np.zeros((len(age), 3), np.int64)
    print(age)
    warnings.warn(f"ages {age}", stacklevel=1)
    return np.stack([np.nan_to_num(age * 1e12)] * 4, axis=1).astype(np.int64) * np.array([1, -1, 1, -1])


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    rows=ROWS,
    row=ROWS.filter(len),
    other=ROWS.filter(len),
    one_by_one=st.booleans(),
    norm=st.sampled_from((None, 600.0)),
)
def test_a_row_moves_the_sums_by_no_more_than_is_stated_whatever_the_function_does(rows, row, other, one_by_one, norm):
    query = declared(wild, one_by_one=one_by_one, norm=norm, least=(0, -1024, -1, -1024), rehearse=False)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("error")  # the function's own warnings tell nothing
        without, first, second = (
            columns_of(table).reader(query)(EVERYBODY) if table else np.zeros(4, np.int64)
            for table in (rows, [*rows, row[0]], [*rows, other[0]])
        )
    for adjacency, shift in ((A, first - without), (Z, without - first), (R, second - first)):
        shifts = query.sensitivity(adjacency)
        assert sum(int(d) ** 2 for d in shift) * Fraction(STEP) ** 2 <= Fraction(shifts.l2((1.0,) * 4)) ** 2
        if isinstance(shifts, BoxShifts):
            assert all(abs(int(d)) * Fraction(STEP) <= Fraction(b) for d, b in zip(shift, shifts.boxes[0], strict=True))


def test_the_bounds_of_a_row_are_the_sensitivity():
    query = declared(least=(0, 0, -1024, -512))
    assert query.sensitivity(A) == query.sensitivity(Z) == BoxShifts(boxes=((1.0, 1.0, 1.0, 1.0),))
    assert query.sensitivity(R) == BoxShifts(boxes=((1.0, 1.0, 2.0, 1.5),))
    ball = declared(norm=1500.0)
    assert ball.sensitivity(A) == BallShifts(radius=1500 * STEP)
    assert ball.sensitivity(R) == BallShifts(radius=3000 * STEP)


@pytest.mark.slow_after(1)  # many tables and their neighbours in exact integers
@pytest.mark.parametrize("adjacency", [A, R])
@pytest.mark.parametrize("more", [{}, {"norm": 1200.0}, {"one_by_one": True}], ids=str)
def test_a_search_finds_no_more_than_is_stated(adjacency, more):
    report = check_sensitivity(declared(**more), schema=SCHEMA, bins=8, adjacency=adjacency, evaluations=150)
    assert not report.refuted, report
    assert report.ratio > 0.4


def test_a_search_refutes_a_sensitivity_that_is_declared_too_small():
    small = declared(sensitivities={A: BoxShifts(boxes=((1.0, 1.0, 1.0, 0.01),))}, rehearse=False)
    assert check_sensitivity(small, schema=SCHEMA, bins=8, evaluations=150).refuted


# ---- before its first use


class Remembering:
    """Adds to a row what it has seen before it."""

    def __init__(self):
        self.seen = 0.0

    def __call__(self, chunk):
        self.seen += np.nan_to_num(chunk["age"]).sum()
        return np.full((len(chunk["age"]), 4), int(self.seen), np.int64)


def mixing(chunk):
    return products(chunk) - products(chunk).mean(axis=0).astype(np.int64)


def counting(chunk):
    return np.ones((len(chunk["age"]), 4), np.int64) * len(chunk["age"])


@pytest.mark.parametrize(
    ("query", "match"),
    [
        (declared(mixing), "must depend on that row only"),
        (declared(counting), "contributes .* alone, and"),
        (declared(Remembering(), one_by_one=True), "at first, and .* after other rows"),
        (declared(lambda chunk: chunk["age"]), r"returns shape \(512,\) of float64"),
        (declared(lambda chunk: products(chunk)[:, :3]), r"declared are whole numbers \(512, 4\)"),
        (declared(lambda chunk: 1 // 0), "raises ZeroDivisionError for a chunk of 512 synthetic rows"),
        (
            declared(sensitivities={A: BoxShifts(boxes=((1.0, 1.0, 1.0, 0.01),))}),
            "two synthetic tables that are neighbours",
        ),
        (declared(sensitivities={R: BallShifts(radius=0.5)}), "replace-one"),
    ],
)
def test_a_function_is_tried_on_synthetic_rows_before_a_draw_is_used(query, match):
    table = columns_of([(4.0, "u", 0.5)])
    round_, mechanism, _ = opened(query, table)
    with round_, pytest.raises(InvalidParameter, match=match):
        round_.release(query, mechanism, purpose="sums")


def test_the_rehearsal_sees_no_row_of_the_table_and_is_made_once():
    seen = []

    def watching(chunk):
        seen.append(chunk["age"].copy())
        return products(chunk)

    secret = 3.14159
    table, query = columns_of([(secret, "u", 0.5)] * 5), declared(watching)
    read = table.reader(query)
    calls = len(seen)
    assert calls > 0
    assert not any((each == secret).any() for each in seen)
    table.reader(query)
    assert len(seen) == calls
    read(EVERYBODY)
    assert len(seen) == calls + 2  # the row that fills blocks up, and a block with the five equal rows, which are one
    assert [(each == secret).sum() for each in seen[-2:]] == [0, 1]
    table.reader(declared(watching, rehearse=False))
    assert len(seen) == calls + 2


# ---- who says so


def test_the_ledger_says_who_declares_it_and_that_it_is_not_proven(tmp_path):
    rows, query = [(4.0, "u", 0.5)] * 20, declared()
    assert query.caveat == "products declared by tests 1.0, not proven here"
    silent, mechanism, _ = opened(query, columns_of(rows), purpose="sums")
    with silent, pytest.raises(RoundViolation, match=r"purpose=statistic\.purpose"):
        silent.release(query, mechanism, purpose="sums")
    round_, mechanism, ledger = opened(query, columns_of(rows))
    with round_:
        release = round_.release(query, mechanism, purpose="sums")
    assert release.caveat == query.caveat
    assert release.value.shape == (4,)
    ledger.save(tmp_path / "ledger.jsonl")
    assert "not proven here" in (tmp_path / "ledger.jsonl").read_text()
    verify_ledger(tmp_path / "ledger.jsonl")


def test_of_what_is_called_row_by_row_it_is_declared_that_it_remembers_nothing():
    query = declared(one_by_one=True)
    assert query.caveat == "products declared by tests 1.0 to remember no row, not proven here"
    less = declared(one_by_one=True, sensitivities={A: BallShifts(radius=2.0)})
    assert less.caveat == "products declared by tests 1.0, not proven here"
    silent, mechanism, _ = opened(query, columns_of([(4.0, "u", 0.5)] * 20), purpose="sums")
    with silent, pytest.raises(RoundViolation, match=r"purpose=statistic\.purpose"):
        silent.release(query, mechanism, purpose="sums")


@pytest.mark.parametrize("purpose", ["sums of products declared by tests 1.0, not proven here", "(products)"])
def test_a_purpose_that_only_looks_like_the_statistics_own_is_refused(purpose):
    query = declared()
    round_, mechanism, ledger = opened(query, columns_of([(4.0, "u", 0.5)]), purpose=purpose)
    with round_, pytest.raises(RoundViolation, match=r"purpose=statistic\.purpose"):
        round_.release(query, mechanism, purpose="sums")


def test_two_statistics_of_one_draw_are_both_named():
    one, other = declared(), declared(name="others", declared_by="somebody")
    purpose = one.purpose(other.purpose("sums")) + " of the third step"
    assert set(caveats_in(purpose)) == {one.caveat, other.caveat}
    round_, mechanism, ledger = opened(one, columns_of([(4.0, "u", 0.5)]), purpose=purpose)
    with round_:
        round_.release(one, mechanism, purpose="sums")
    (grant,) = (entry.index for entry in ledger.entries if isinstance(entry, GrantEntry))
    assert set(declared_in(ledger.record(), grant)) == {one.caveat, other.caveat}


def test_a_sensitivity_does_not_change_once_it_is_declared():
    query = declared(sensitivities={A: BallShifts(radius=2.0)})
    with pytest.raises(TypeError):
        query.sensitivities[A] = BallShifts(radius=1e-9)


def test_a_row_for_which_the_function_leaves_the_program_counts_nothing():
    def leaving(chunk):
        if (chunk["age"] == 5.0).any():
            raise SystemExit(f"{chunk['age']}")
        return products(chunk)

    rows = [(4.0, "u", 0.5)] * 3
    read = columns_of([*rows, (5.0, "u", 0.5)]).reader(declared(leaving, rehearse=False))
    assert read(EVERYBODY).tolist() == columns_of(rows).reader(declared())(EVERYBODY).tolist()


def test_row_by_row_means_that_the_function_never_sees_two_rows():
    sizes = []

    def watching(chunk):
        sizes.append(len(chunk["age"]))
        return products(chunk)

    columns_of([(4.0, "u", 0.5)] * 7).reader(declared(watching, one_by_one=True))(EVERYBODY)
    assert set(sizes) == {1}


def test_a_replay_knows_it():
    rows = [(float(age), "u", y) for age, y in itertools.product(range(5), (-0.5, 0.25))]
    X = np.array([[age, kind] for age, kind, _ in rows], dtype=object)
    y = np.array([y for *_, y in rows])
    query = declared()

    def fit(data):
        table = ColumnTable.from_data(data[0], SCHEMA, y=data[1])
        round_, mechanism, _ = opened(query, table)
        with round_:
            return round_.release(query, mechanism, purpose="sums").value.tolist()

    found = replay(fit, (X, y), (X[1:], y[1:]))
    assert found.ok, found
    assert 0.0 < found.largest_share <= 1.0


# ---- tables


def test_a_table_of_trees_shows_the_middles_of_cells_and_the_labels():
    seen = []

    def watching(chunk):
        seen.append((chunk["age"][0], chunk["kind"][0], chunk["y"][0]))
        return products(chunk)

    missing = Numeric("age", 0.0, 8.0, missing=True)
    schema = Schema(features=(missing, KIND), target=Y)
    X = np.array([[0.1, "u"], [8.0, "w"], [np.nan, "v"]], dtype=object)
    table = Table.from_data(X, np.array([0.25, -1.0, 1.0]), schema, loss="squared", bins=8)
    query = declared(watching, columns=(missing, KIND, Y), one_by_one=True)
    table.reader(query)(EVERYBODY)
    np.testing.assert_allclose(
        sorted(seen[-3:], key=lambda row: row[1]), [[0.5, 0, 0.25], [np.nan, 1, 1], [7.5, 2, -1]]
    )
    classes = Schema(features=(AGE, KIND), target=Categorical("class", ("no", "yes")))
    labels = np.array(["yes", "no", "perhaps"], dtype=object)
    table = Table.from_data(X, labels, classes, loss="logistic", bins=8)
    own = DeclaredStatistic(
        name="classes", declared_by="tests", columns=(classes.target,), most=(1,),
        function=lambda chunk: (chunk["class"] == 1).astype(np.int64)[:, np.newaxis],
    )  # fmt: skip
    assert table.reader(own)(EVERYBODY).tolist() == [1]
    turned = Schema(features=(AGE, KIND), target=Categorical("class", ("yes", "no")))
    places = DeclaredStatistic(
        name="places", declared_by="tests", columns=(turned.target,), most=(1,) * 4,
        function=lambda chunk: (chunk["class"][:, np.newaxis] == np.arange(4)).astype(np.int64),
    )  # fmt: skip
    labels = np.array(["yes", "yes", "perhaps"], dtype=object)
    for of_two in (
        Table.from_data(X[[0, 0, 1]], labels, turned, loss="logistic", bins=8),
        ColumnTable.from_data(X[[0, 0, 1]], turned, y=labels),
    ):
        assert of_two.reader(places)(EVERYBODY).tolist() == [2, 0, 1, 0]
    with pytest.raises(RoundViolation, match="is not one of the table's"):
        table.reader(query)
    cells = Table(schema=SCHEMA, cells=np.zeros((2, 1), np.uint8), targets=np.zeros(1))
    with pytest.raises(RoundViolation, match="does not hold the values"):
        cells.reader(declared())


def test_a_column_that_the_table_does_not_have_is_refused():
    with pytest.raises(SchemaError, match="no column 'height'"):
        columns_of([(1.0, "u", 0.0)]).reader(declared(columns=(Numeric("height", 0, 2),)))


def test_what_the_function_keeps_or_changes_is_its_own_copy():
    def spoiling(chunk):
        found = products(chunk)
        chunk["age"][:] = 0.0
        return found

    table = columns_of([(4.0, "u", 0.5)] * 3)
    read = table.reader(declared(spoiling))
    assert read(EVERYBODY).tolist() == read(EVERYBODY).tolist()


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"name": ""}, "name="),
        ({"declared_by": "two\nlines"}, "declared_by="),
        ({"name": "sums (of mine)"}, "without parentheses"),
        ({"columns": ()}, "columns"),
        ({"columns": ("age",)}, "column="),
        ({"most": ()}, "most"),
        ({"most": (1.5,) * 4}, "most"),
        ({"most": (2**41,) * 4}, "most"),
        ({"least": (0,) * 3}, "least"),
        ({"least": (1,) * 4}, "least"),
        ({"most": (0,) * 4, "least": (0,) * 4}, "most"),
        ({"exponent": 0.5}, "exponent"),
        ({"norm": 0.0}, "norm"),
        ({"one_by_one": 1}, "one_by_one"),
        ({"sensitivities": {A: 1.0}}, "sensitivities"),
        ({"sensitivities": {A: BoxShifts(boxes=((1.0,),))}}, "sensitivities"),
    ],
)
def test_a_description_outside_its_bounds_is_refused(more, match):
    with pytest.raises(InvalidParameter, match=match):
        declared(**more)


def test_a_models_statement_names_what_its_draws_say_is_not_proven():
    query = declared()
    round_, mechanism, ledger = opened(query, columns_of([(4.0, "u", 0.5)] * 20))
    with round_:
        round_.release(query, mechanism, purpose="sums")
    (grant,) = (entry.index for entry in ledger.entries if isinstance(entry, GrantEntry))
    assert declared_in(ledger.record(), grant) == (query.caveat,)
    other = ledger.grant(mechanism.event(query.sensitivity(A), A), purpose="another fit of an equal plan", delta=1e-3)
    assert declared_in(ledger.record(), grant) == (query.caveat,)
    assert declared_in(ledger.record(), other.index) == ()


# ------------------------------------------------------------------------------------- weights, norms and constants

WEIGHTED = Schema(features=(AGE, KIND), target=Y, weight_bound=2.0)


def weighted_table(rows, weights, bins=1 << 15):
    X = np.array([[age, kind] for age, kind, _ in rows], dtype=object).reshape(-1, 2)
    y = np.array([y for *_, y in rows], dtype=np.float64)
    return Table.from_data(X, y, WEIGHTED, loss="squared", bins=bins, sample_weight=np.array(weights))


def test_a_row_contributes_its_share_of_the_weight_bound_truncated_toward_zero():
    def whole(chunk):
        return np.stack([np.full(len(chunk["y"]), 7), np.full(len(chunk["y"]), -7)], axis=1)

    query = declared(whole, most=(7, 7), exponent=0)
    rows = [(1.0, "u", 0.0)] * 5
    weights = [2.0, 1.0, 0.5, 0.0, 1.999999]
    shares = [int(Fraction(7) * Fraction(round(w / 2.0 * 2**20), 2**20)) for w in weights]
    found = weighted_table(rows, weights).statistic(query, EVERYBODY)
    assert found.tolist() == [sum(shares), -sum(shares)]
    assert weighted_table(rows, [2.0] * 5).statistic(query, EVERYBODY).tolist() == [35, -35]


@pytest.mark.parametrize("adjacency", [A, R])
@pytest.mark.parametrize("more", [{}, {"norm": 1200.0}, {"least": (0, 0, -1024, -1024)}], ids=str)
def test_a_search_over_rows_and_weights_finds_no_more_than_is_stated(adjacency, more):
    found = check_sensitivity(declared(**more), schema=WEIGHTED, adjacency=adjacency, evaluations=80, rng=1)
    assert found.verdict == "not refuted"
    assert 0.4 < found.ratio <= 1.0


@pytest.mark.parametrize("norm", [5.0, 5.0 - 2**-40, 5.0 + 2**-40, float(2**40), math.nextafter(2**40, 0)])
def test_a_norm_is_held_exactly(norm):
    rows = np.array([[3, 4], [4, 4], [2**40, 0], [2**40, 1], [0, -5], [-3, -4], [0, 0]])

    def of_age(chunk):
        return rows[chunk["age"].astype(np.int64)]

    query = declared(of_age, most=(2**40, 2**40), norm=norm, rehearse=False)
    kept = [row for row in rows.tolist() if sum(n * n for n in row) <= Fraction(norm) ** 2]
    table = columns_of([(float(age), "u", 0.0) for age in range(len(rows))])
    assert table.statistic(query, EVERYBODY).tolist() == np.sum(kept, axis=0).tolist()


def scaled_by(chunk, constants):
    return np.rint(chunk["y"] * constants["factor"])[:, np.newaxis].astype(np.int64) + constants["shift"].sum()


def test_a_function_gets_its_constants_and_cannot_change_them():
    shift = np.array([1, 2])
    query = declared(scaled_by, most=(100,), constants={"factor": np.float64(10.0), "shift": shift}, exponent=0)
    shift[:] = 50
    assert query.constants["shift"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        query.constants["shift"][0] = 5
    with pytest.raises(ValueError, match="WRITEABLE"):
        query.constants["shift"].flags.writeable = True
    with pytest.raises(TypeError):
        query.constants["factor"] = 3.0
    rows = [(1.0, "u", 0.5), (2.0, "v", -1.0)]
    assert columns_of(rows).statistic(query, EVERYBODY).tolist() == [5 + 3 - 10 + 3]
    assert check_sensitivity(query, schema=SCHEMA, evaluations=40, rng=0).verdict == "not refuted"


@pytest.mark.parametrize("constants", [{"a b": 1}, {"a": [1, 2]}, {"a": np.array([None])}, {"a": {"b": 1}}, {1: 2}])
def test_a_constant_that_is_no_public_value_is_refused(constants):
    with pytest.raises(InvalidParameter, match="constants"):
        declared(constants=constants)


def test_a_replay_tells_the_constants_of_two_fits_apart():
    def fit(data):
        table = columns_of(data[0])
        learned = float(len(data[0]))  # which a constant must not be made of
        query = declared(scaled_by, most=(100,), constants={"factor": learned, "shift": np.zeros(1, np.int64)})
        round_, mechanism, _ = opened(query, table)
        with round_ as open_round:
            return open_round.release(query, mechanism, purpose="sums").value

    rows = np.array([(1.0, "u", 0.5), (2.0, "v", -1.0)], dtype=object)
    found = replay(fit, (rows,), ((rows[:1]),))
    assert not found.ok
    assert "constants" in str(found)


def test_a_replaced_row_may_be_unreadable_on_one_side_which_a_declared_sensitivity_has_to_cover():
    def one(chunk):
        return np.ones((len(chunk["y"]), 1), dtype=np.int64)

    nothing_moves = BoxShifts(boxes=((0.5,),))
    query = declared(one, most=(1,), exponent=0, sensitivities={R: nothing_moves})
    with pytest.raises(InvalidParameter, match="differ by"):
        columns_of([(1.0, "u", 0.5)]).reader(query)


# ------------------------------------------------------------------- floats, that are rounded by a row's place


def at_a_threshold():
    """Rows, and a count of those whose weighted sum is at least what one and many rows are rounded to differently."""
    generator, features = np.random.default_rng(0), tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(64))
    for _ in range(60):
        row = (generator.integers(0, 16, 64) + 0.5) / 16
        factors = generator.normal(size=64)
        row[0] = 0.03125
        many, one = np.tile(row, (100, 1)) @ factors, float((row[np.newaxis] @ factors)[0])
        if len({*many.tolist(), one}) > 1:
            yield features, row, factors, max(*many.tolist(), one)


def counted(features, factors, threshold, fails, X):
    def at_least(chunk):
        rows = np.stack([chunk[feature.name] for feature in features], axis=1)
        if fails and (rows[:, 0] == 0.46875).any():
            raise ZeroDivisionError
        return (rows @ factors >= threshold).astype(np.int64)[:, np.newaxis]

    query = DeclaredStatistic(
        name="at least", declared_by="tests", columns=features, function=at_least, least=(0,), most=(1,)
    )
    schema = Schema(features=features, target=Y)
    table = Table.from_data(X, np.zeros(len(X)), schema, loss="squared", bins=16)
    return int(table.statistic(query, EVERYBODY)[0])


def test_how_many_rows_there_are_does_not_change_what_another_row_contributes():
    found = list(itertools.islice(at_a_threshold(), 5))
    others = (np.random.default_rng(1).integers(0, 16, (200, 64)) + 0.5) / 16
    for features, row, factors, threshold in found:
        for n in (4, 100):
            X = np.vstack([np.tile(row, (n, 1)), others[: 2 * n]])
            values = [counted(features, factors, threshold, False, rows) for rows in (X, X[1:], X[::-1])]
            assert values[0] - values[1] in (0, 1)
            assert values[0] == values[2]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("distinct", [False, True])
def test_numbers_that_depend_on_place_and_length_move_by_one_row_only(fails, distinct):
    def by_place(chunk):
        if fails and (chunk["age"] == 7.5).any():
            raise ZeroDivisionError
        return (np.arange(len(chunk["age"])) % 7 + len(chunk["age"]))[:, np.newaxis]

    query = declared(by_place, columns=(AGE,), most=(520,), least=(0,), rehearse=False)
    ages = np.linspace(0, 3, 700).tolist() if distinct else [2.0] * 700
    rows = [(age, "u", 0.5) for age in ages]
    value = int(columns_of(rows).statistic(query, EVERYBODY)[0])
    for neighbour in (rows[1:], rows[:350] + rows[351:], [(7.5, "u", 0.5), *rows], [*rows, (7.0, "u", 0.5)]):
        move = abs(value - int(columns_of(neighbour).statistic(query, EVERYBODY)[0]))
        assert move <= 520
        if fails and len(neighbour) == 701 and neighbour[0][0] == 7.5:
            assert move == 0


def test_a_row_for_which_the_function_fails_changes_no_other_row():
    bad = np.full((1, 64), 0.46875)
    others = (np.random.default_rng(1).integers(0, 16, (400, 64)) + 0.5) / 16
    others = others[others[:, 0] != 0.46875]
    for features, row, factors, threshold in itertools.islice(at_a_threshold(), 6):
        X = np.vstack([np.tile(row, (100, 1)), others])
        expected = counted(features, factors, threshold, True, X)
        for some in (np.vstack([X, bad]), np.vstack([bad, X, bad])):
            assert counted(features, factors, threshold, True, some) == expected


def test_a_row_has_one_place_in_blocks_of_one_size_whatever_the_other_rows_are():
    generator, places = np.random.default_rng(0), {}

    def watching(chunk):
        assert len(chunk["age"]) == 512
        for place, age in enumerate(chunk["age"].tolist()):
            if age != 4.0:
                places.setdefault(age, set()).add(place)
        if (chunk["age"] == 1.0).any():
            raise ValueError
        return products(chunk)

    rows = [(1.0, "u", 0.0), *((age, "u", 0.5) for age in generator.uniform(0, 3, 900).tolist())]
    for some in (rows, rows[1:], rows[::-1], rows[:5], rows[300:]):
        columns_of(some).reader(declared(watching, rehearse=False))(EVERYBODY)
    assert len(places) == 901
    assert {len(each) for each in places.values()} == {1}


def test_a_zero_has_one_sign():
    signs = []

    def watching(chunk):
        signs.append(np.signbit(chunk["age"][chunk["age"] == 0.0]).any())
        return products(chunk)

    columns_of([(-0.0, "u", 0.5)] * 9).reader(declared(watching, rehearse=False))(EVERYBODY)
    assert not any(signs)


def test_a_function_that_fails_for_the_filling_row_counts_nothing_whatever_the_rows_are():
    def failing(chunk):
        if (chunk["age"] == 4.0).any():
            raise ValueError
        return products(chunk)

    ages = np.linspace(0, 3, 5000).tolist()
    query = declared(failing, rehearse=False)
    assert not columns_of([(age, "u", 0.5) for age in ages]).reader(query)(EVERYBODY).any()


class PanicError(BaseException):
    """As a panic of Rust reaches Python."""


@pytest.mark.parametrize("kind", [PanicError, GeneratorExit, SystemExit])
def test_what_is_no_exception_tells_nothing_of_a_row_either(kind):
    def failing(chunk):
        if (chunk["age"] == 5.0).any():
            raise kind("the secret")
        return products(chunk)

    rows = [(4.5, "u", 0.5)] * 3
    read = columns_of([*rows, (5.0, "u", 0.5)]).reader(declared(failing, rehearse=False))
    assert read(EVERYBODY).tolist() == columns_of(rows).reader(declared())(EVERYBODY).tolist()


def test_an_interrupt_stays_one_and_says_nothing():
    def interrupted(chunk):
        raise KeyboardInterrupt("the secret")

    with pytest.raises(KeyboardInterrupt) as caught:
        columns_of([(4.5, "u", 0.5)]).reader(declared(interrupted, rehearse=False))(EVERYBODY)
    assert not caught.value.args
    assert caught.value.__context__ is None


# ------------------------------------------------------------------------- declared shifts, weights, and rehearsals


def many_and_one(chunk):
    """299 times 1, and 10 or -10."""
    found = np.ones((len(chunk["age"]), 300), dtype=np.int64)
    found[:, 299] = np.where(np.nan_to_num(chunk["age"]) > 4.0, 10, -10)
    return found


@pytest.mark.parametrize("shifts", ["ball", "boxes"])
def test_two_weighted_rows_are_truncated_one_by_one_and_move_a_step_further(shifts):
    radius = math.nextafter(math.sqrt(299 + 400), 1e9)
    stated = BallShifts(radius=radius) if shifts == "ball" else BoxShifts(boxes=((1.0,) * 299 + (20.0,),))
    query = declared(many_and_one, columns=(AGE,), most=(1,) * 299 + (10,), exponent=0, sensitivities={R: stated})
    widest = Fraction(query.sensitivity(R).l2((1.0,) * 300))
    for one, other in itertools.product((2.0, 2.0 - 2**-19, 1.0, 0.0), repeat=2):
        tables = (
            weighted_table([(age, "u", 0.0)], [weight]).statistic(query, EVERYBODY)
            for age, weight in ((8.0, one), (0.0, other))
        )
        move = [int(a) - int(b) for a, b in zip(*tables, strict=True)]
        assert sum(number**2 for number in move) <= widest**2
    whole = declared(
        many_and_one, columns=(AGE,), most=(1,) * 299 + (10,), exponent=0, sensitivities={R: stated}, weighted=False
    )
    assert whole.sensitivity(R) == stated
    with pytest.raises(RoundViolation, match="set weighted=True"):
        weighted_table([(8.0, "u", 0.0)], [1.0]).reader(whole)


def test_steps_that_are_too_coarse_for_weights_are_warned_of():
    def ones(chunk):
        return np.ones((len(chunk["age"]), 1), dtype=np.int64)

    coarse = declared(ones, most=(1,), exponent=0)
    for query, table, told in (
        (coarse, weighted_table([(1.0, "u", 0.0)], [1.0]), True),
        (coarse, columns_of([(1.0, "u", 0.0)]), False),
        (declared(), weighted_table([(1.0, "u", 0.0)], [1.0]), False),
    ):
        round_, mechanism, _ = opened(query, table)
        with round_, warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            round_.release(query, mechanism, purpose="sums")
        assert [each.category for each in found] == [PrivacyWarning] * told


@given(
    c=st.lists(st.integers(-6, 6), min_size=2, max_size=2), d=st.lists(st.integers(-6, 6), min_size=2, max_size=2),
    w=st.integers(0, 16), v=st.integers(0, 16),
)  # fmt: skip
@settings(max_examples=400, deadline=None, derandomize=True)
def test_truncated_shares_differ_by_less_than_a_step_more_than_the_shares(c, d, w, v):
    for one, other in zip(c, d, strict=True):
        move = abs(math.trunc(Fraction(one * w, 16)) - math.trunc(Fraction(other * v, 16)))
        assert move < abs(Fraction(one * w - other * v, 16)) + 1


def ten_and_one(chunk):
    return np.tile(np.array([[10, 1]]), (len(chunk["age"]), 1))


@pytest.mark.parametrize(
    ("stated", "refused"),
    [
        (BoxShifts(boxes=((1.0, 10.0),)), True),
        (BoxShifts(boxes=((10.0, 1.0),)), False),
        (BoxShifts(boxes=((10.0, 0.0), (0.0, 1.0))), True),
        (BoxShifts(boxes=((1.0, 10.0), (10.0, 1.0))), False),
        (BoxShifts(boxes=((10.0, 1.0),), l1_boxes=((1.0, 10.0),)), True),
        (BoxShifts.moved(boxes=((8.0, 1.0),)), False),
        (BallShifts(radius=math.nextafter(math.sqrt(101), 99)), False),
        (BallShifts(radius=10.04), True),
    ],
    ids=str,
)
def test_a_rehearsal_compares_column_by_column(stated, refused):
    query = declared(ten_and_one, most=(10, 10), exponent=0, sensitivities={A: stated})
    if refused:
        with pytest.raises(InvalidParameter, match="neighbours"):
            columns_of([]).reader(query)
    else:
        columns_of([]).reader(query)


def test_an_error_of_a_rehearsal_shows_few_numbers():
    def wide(chunk):
        return np.ones((len(chunk["age"]), 2000), dtype=np.int64) * len(chunk["age"])

    with pytest.raises(InvalidParameter, match="and 1992 more") as caught:
        columns_of([]).reader(declared(wide, most=(1,) * 2000))
    assert len(str(caught.value)) < 500
