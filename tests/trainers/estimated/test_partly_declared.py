"""Schemas that a draft declares in part: the rest is estimated, what is declared costs nothing, in every place."""

import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ledgerwood as lw
from ledgerwood.accounting.events import GaussianEvent, LaplaceEvent
from ledgerwood.accounting.ledger import DrawEntry
from ledgerwood.curator import TypedColumn, TypedColumns, with_draft
from ledgerwood.errors import InvalidParameter, SchemaError, SchemaTypeError
from ledgerwood.federation import federate
from ledgerwood.mechanisms import GaussianStabilityMechanism
from ledgerwood.trainers import (
    DPBoostRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)
from ledgerwood.trainers.estimated.categories import most_frequent
from ledgerwood.trainers.estimated.purchase import SchemaPurchase
from ledgerwood.trainers.estimated.ranges import within
from ledgerwood.verification import verify_ledger

pytestmark = pytest.mark.filterwarnings("ignore::ledgerwood.errors.PrivacyWarning")

CODES = tuple(f"{place:05d}" for place in range(10_000))
BUDGET = lw.Budget(epsilon=2.0, delta=1e-6, adjacency=lw.Adjacency.ADD_REMOVE)
SMALL = {"epsilon": 2.0, "delta": 1e-6, "n_estimators": 3, "max_depth": 2, "random_state": 4}


def rows(n=4000):
    """Sizes, postcodes of which the first ones are frequent, kinds, days."""
    random = np.random.default_rng(1)
    shares = 1.0 / np.arange(1, 10_001) ** 1.2
    frame = pd.DataFrame(
        {
            "size": random.uniform(0, 7, n),
            "postcode": np.array(CODES)[random.choice(10_000, n, p=shares / shares.sum())],
            "kind": random.choice(["a", "b"], n),
            "flag": random.random(n) < 0.5,
        }
    )
    return frame, np.where(frame["postcode"].isin(CODES[:3]), 0.9, 0.1)


FRAME, Y = rows()
DRAFT = lw.Schema.draft(FRAME.assign(y=Y), target="y")
PARTLY = DRAFT.filled(
    {"size": lw.Numeric("size", 0, 7), "postcode": lw.OpenCategorical("postcode", max_categories=8), "y": (0, 1)}
).with_open_estimated()
LISTED = PARTLY.filled({"postcode": lw.OpenCategorical("postcode", max_categories=8, among=CODES)})


def purchase(draft, budget=BUDGET, X=FRAME, y=Y, **options):
    columns = with_draft(TypedColumns.of(X, y, numeric_target=True), draft)
    return SchemaPurchase.planned(columns, budget, share=0.1, **options)


def draws(model):
    return [entry.purpose for entry in model.ledger_.entries if isinstance(entry, DrawEntry)]


def test_declared_columns_are_not_drawn_for_and_the_open_ones_share_the_budget():
    found = purchase(PARTLY)
    everything = SchemaPurchase.planned(TypedColumns.of(FRAME, Y, numeric_target=True), BUDGET, share=0.1)
    assert (len(found.events), len(everything.events)) == (2, 4)  # postcode and kind; of all: size, y, too
    # Two columns share what four did, of which the target had a quarter: (1/2) of it each, not (3/4) / 3.
    assert found.noise_scale == pytest.approx(everything.noise_scale / np.sqrt(2.0))
    assert found.key_delta == everything.key_delta
    whole = lw.price(lw.Composed(tuple(found.events)))
    share = lw.price(GaussianEvent(noise_multiplier=found.noise_scale / np.sqrt(2.0), adjacency=BUDGET.adjacency))
    assert whole.epsilon(2e-7) >= share.epsilon(2e-7) * (1 - 1e-9)  # the counts alone are one Gaussian of both


@pytest.mark.parametrize("draft", [PARTLY, LISTED], ids=["found", "listed"])
def test_the_fit_takes_what_is_declared_and_estimates_the_rest_within_its_budget(draft, tmp_path):
    model = SGBDTRegressor(**{**SMALL, "n_estimators": 60}, schema=draft).fit(FRAME, Y)
    size, postcode, kind, flag = model.schema_.features
    assert size == lw.Numeric("size", 0, 7)
    assert flag == lw.Categorical("flag", (False, True), missing=True)
    assert set(kind.categories) == {"a", "b"}
    assert len(postcode.categories) <= 8
    assert set(CODES[:3]) <= set(postcode.categories)
    assert model.schema_.target == lw.Numeric("y", 0, 1)
    assert not any(
        "feature 1" in purpose or "feature 4" in purpose or "target" in purpose for purpose in draws(model)[:4]
    )
    assert "what the draft of the schema declares is public" in model.privacy_.assumptions[0]
    model.ledger_.save(tmp_path / "ledger.jsonl")
    assert verify_ledger(tmp_path / "ledger.jsonl").epsilon_readded <= 2.0
    assert np.corrcoef(model.predict(FRAME), Y)[0, 1] > 0.8
    model.save(tmp_path / "model")
    again = SGBDTRegressor.load(tmp_path / "model")
    assert (again.schema, again.plan_, again.schema_) == (draft, model.plan_, model.schema_)


def test_a_public_list_needs_no_delta():
    pure = lw.Budget(epsilon=2.0, delta=0.0, adjacency=lw.Adjacency.ADD_REMOVE)
    draft = LISTED.filled({"kind": ("a", "b")})
    found = purchase(draft, pure)
    (event,) = found.events
    assert isinstance(event, LaplaceEvent)
    assert event.noise_multiplier == pytest.approx(found.noise_scale, rel=1e-12)
    assert found.noise_scale == pytest.approx(1.0 / (0.1 * 2.0))
    with pytest.raises(InvalidParameter, match="buys no categories"):
        purchase(LISTED, pure)  # of kind nobody has listed them
    model = DPBoostRegressor(epsilon=2.0, n_estimators=2, schema=draft, random_state=1).fit(FRAME, Y)
    assert model.privacy_.delta == 0.0
    assert CODES[0] in model.schema_.features[1].categories


def test_of_a_long_list_all_frequent_ones_are_found_and_hardly_any_other():
    model = SGBDTRegressor(epsilon=8.0, delta=1e-6, n_estimators=1, schema=LISTED, random_state=9).fit(FRAME, Y)
    true = FRAME["postcode"].value_counts()
    assert set(true.index[:6]) <= set(model.schema_.features[1].categories)
    assert model.schema_.features[1].categories == tuple(sorted(model.schema_.features[1].categories))  # as listed


def test_ties_and_orders_of_counts():
    assert most_frequent((("a", 1.0), ("b", 3.0), ("c", 3.0), ("d", -2.0)), 2) == ("b", "c")
    assert most_frequent((("a", 1.0), ("b", 1.0)), 1) == ("a",)
    assert most_frequent((), 3) == ()


@pytest.mark.parametrize(
    ("given", "estimated", "found"),
    [
        (lw.OpenNumeric("a", low=0.0), (-4.0, 8.0), (0.0, 8.0)),
        (lw.OpenNumeric("a", high=5.0), (-4.0, 8.0), (-4.0, 5.0)),
        (lw.OpenNumeric("a", low=9.0), (-4.0, 8.0), (9.0, 18.0)),
        (lw.OpenNumeric("a", high=-1e300), (-4.0, 8.0), (-2e300, -1e300)),
        (lw.OpenNumeric("a"), (-4.0, 8.0), (-4.0, 8.0)),
        (None, (-4.0, 8.0), (-4.0, 8.0)),
    ],
)
def test_a_bound_that_is_given_stays_whatever_is_estimated(given, estimated, found):
    assert within(given, *estimated) == found
    assert lw.Numeric("a", *found).low == found[0]


def test_a_missing_value_that_is_declared_away_leaves_the_row_out():
    frame = FRAME.copy()
    frame.loc[frame.index[:2000], "size"] = np.nan
    kept = SGBDTRegressor(**SMALL, schema=PARTLY.filled({"size": lw.Numeric("size", 0, 7, missing=True)})).fit(frame, Y)
    left = SGBDTRegressor(**SMALL, schema=PARTLY).fit(frame, Y)
    half = SGBDTRegressor(**SMALL, schema=left.schema_).fit(frame[2000:], Y[2000:])
    assert kept.schema_.features[0].missing
    # Without these rows no tree differs but by its noise: the same seed draws the same.
    assert np.abs(left.predict(FRAME) - half.predict(FRAME)).max() < 0.4


def test_files_and_frames_learn_the_same_model_and_leave_other_columns_alone(tmp_path):
    whole = FRAME.assign(y=Y, note="x")
    pq.write_table(
        pa.Table.from_pandas(whole[["note", "flag", "size", "kind", "postcode", "y"]]), tmp_path / "a.parquet"
    )
    model = SGBDTRegressor(**SMALL, schema=PARTLY).fit(FRAME, Y)
    filed = SGBDTRegressor(**SMALL, schema=PARTLY).fit(str(tmp_path / "a.parquet"), "y")
    polar = SGBDTRegressor(**SMALL, schema=PARTLY).fit(pl.from_pandas(FRAME), Y)
    for other in (filed, polar):
        assert other.schema_ == model.schema_
        assert np.array_equal(other.predict(FRAME), model.predict(FRAME))


@pytest.mark.parametrize("draft", [PARTLY, LISTED], ids=["found", "listed"])
def test_a_federation_estimates_what_is_open(draft):
    # A table of keys at owners has room for some hundreds of them; a public list needs no room.
    frame = FRAME if draft is LISTED else FRAME.assign(postcode=FRAME["postcode"].where(FRAME["postcode"] < "00100"))
    parts = [(frame[:1500], Y[:1500]), (frame[1500:], Y[1500:])]
    model = federate(SGBDTRegressor(**{**SMALL, "epsilon": 8.0}, schema=draft), parts, engine="process")
    size, postcode, kind, _ = model.schema_.features
    assert size == lw.Numeric("size", 0, 7)
    assert set(CODES[:3]) <= set(postcode.categories)
    assert len(postcode.categories) <= 8
    assert set(kind.categories) == {"a", "b"}


@pytest.mark.slow  # a cluster
def test_a_cluster_estimates_what_is_open():
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        X = dd.from_pandas(FRAME, npartitions=2, sort=False)
        labels = dd.from_pandas(pd.Series(Y, name="y"), npartitions=2, sort=False)
        there = SGBDTRegressor(**SMALL, schema=LISTED).fit(X, labels, client=client)
    here = SGBDTRegressor(**SMALL, schema=LISTED).fit(FRAME, Y)
    assert there.schema_ == here.schema_
    assert np.array_equal(there.predict(FRAME), here.predict(FRAME))


CLASSES = np.where(Y > 0.5, "yes", "no")


@pytest.mark.slow_after(1)  # a fit of 1.5 to 4 seconds each
@pytest.mark.parametrize(
    "target",
    [lw.Categorical("won", ("no", "yes")), lw.OpenCategorical("won", missing=False), None],
    ids=["declared", "open", "unsaid"],
)
@pytest.mark.parametrize(
    "kind", [SGBDTClassifier, PrivateBoostingClassifier, PrivaTreeClassifier], ids=lambda kind: kind.__name__
)
def test_classes_may_be_declared_beside_open_columns(kind, target):
    draft = dataclasses.replace(PARTLY, target=target)
    model = kind(epsilon=4.0, delta=1e-6, schema=draft, random_state=2).fit(FRAME, CLASSES)
    assert sorted(model.classes_) == ["no", "yes"]
    assert model.schema_.target.name == ("y" if target is None else "won")
    assert np.mean(model.predict(FRAME) == CLASSES) > 0.8


def test_several_declared_classes_share_the_trees():
    labels = np.array(["low", "middle", "high"])[(FRAME["size"] // 2.4).astype(int)]
    draft = dataclasses.replace(PARTLY, target=lw.Categorical("size class", ("low", "middle", "high", "none")))
    model = SGBDTClassifier(epsilon=4.0, delta=1e-6, n_estimators=8, schema=draft, random_state=2).fit(FRAME, labels)
    assert model.classes_.tolist() == ["high", "low", "middle", "none"]
    many = dataclasses.replace(PARTLY, target=lw.Categorical("y", tuple(f"class {place}" for place in range(40))))
    with pytest.raises(InvalidParameter, match="declares 40 classes, and the plan learns at most 32"):
        SGBDTClassifier(epsilon=4.0, delta=1e-6, n_estimators=8, schema=many).fit(FRAME, labels)


@pytest.mark.slow  # a fit of 4 seconds
def test_the_recommended_trees_take_partly_declared_columns():
    model = PrivateBoostingRegressor(epsilon=4.0, delta=1e-6, schema=LISTED, random_state=1).fit(FRAME, Y)
    assert np.corrcoef(model.predict(FRAME), Y)[0, 1] > 0.8


@pytest.mark.parametrize(
    ("make", "X", "said"),
    [
        (lambda: PARTLY, FRAME.drop(columns="kind"), r"rows lack \['kind'\]"),
        (lambda: PARTLY, FRAME.assign(id=1), r"also have \['id'\]"),
        (lambda: PARTLY, FRAME.assign(size="x"), "column 'size' is of a type of text, and the draft says"),
        (lambda: DRAFT.filled({"kind": lw.OpenDate("kind", zoned=True)}).with_open_estimated(),
         FRAME.assign(kind=pd.Timestamp("2001-01-01")), "holds dates with a time zone"),
        (lambda: dataclasses.replace(PARTLY, target=lw.OpenCategorical("y")), FRAME, "this estimator learns numbers"),
        (lambda: dataclasses.replace(PARTLY, target=lw.Categorical("y", ("a", "b"))), FRAME, "needs a Numeric target"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_names_and_types(make, X, said):
    for rows_ in (X, X[:0]):
        with pytest.raises((SchemaError, SchemaTypeError, InvalidParameter), match=said):
            SGBDTRegressor(**SMALL, schema=make()).fit(rows_, Y[: len(rows_)])


def test_weights_need_a_schema_without_open_fields():
    with pytest.raises(SchemaError, match="rows with weights need a schema without open fields"):
        dataclasses.replace(DRAFT, weight_bound=2.0).with_open_estimated()
    with pytest.raises(SchemaError, match="sample_weight needs a declared schema"):
        SGBDTRegressor(**SMALL, schema=PARTLY).fit(FRAME, Y, sample_weight=np.ones(len(Y)))


def test_a_draft_is_estimated_only_if_that_is_said():
    with pytest.raises(SchemaError, match=r"draft.with_open_estimated\(\)"):
        SGBDTRegressor(**SMALL, schema=DRAFT).fit(FRAME, Y)


def test_a_list_and_a_number_of_categories_belong_together():
    with pytest.raises(InvalidParameter, match="max_categories of 'a'=None must be less than 2"):
        lw.OpenCategorical("a", among=("x", "y"))
    with pytest.raises(InvalidParameter, match="max_categories of 'a'=2 must be less than 2"):
        lw.OpenCategorical("a", max_categories=2, among=("x", "y"))
    with pytest.raises(SchemaError, match="is of features, not of the target"):
        with_draft(
            TypedColumns(features=(TypedColumn("a", "text"),), target=TypedColumn("y", "text")),
            lw.SchemaDraft(features=(lw.OpenCategorical("a"),), target=lw.OpenCategorical("y", max_categories=3)),
        )
    draft = lw.SchemaDraft(features=(lw.OpenCategorical("a", max_categories=1, among=("x", "y")),), estimated=True)
    assert lw.SchemaDraft.from_toml(draft.to_toml()) == draft
    with pytest.raises(SchemaError, match="estimated = true is for a fit"):
        lw.Schema.from_toml(draft.to_toml())
    assert purchase(draft, X=FRAME[["kind"]].rename(columns={"kind": "a"})).queries[0].categories == ("x", "y")


def test_the_plan_of_a_draft_depends_on_no_row():
    other = FRAME.assign(postcode="nowhere", size=1e9, kind=None)
    model = SGBDTRegressor(**SMALL, schema=LISTED)
    columns = [
        with_draft(TypedColumns.of(X, Y, numeric_target=True), LISTED) for X in (FRAME, other.astype(FRAME.dtypes))
    ]
    assert columns[0] == columns[1]
    assert model.make_plan(columns[0]).event == model.make_plan(columns[1]).event
    assert isinstance(purchase(PARTLY).key_mechanism(1), GaussianStabilityMechanism)
