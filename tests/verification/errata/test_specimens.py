"""The protocol that every specimen is held to, and the library's models on the pairs of those without noise."""

import dataclasses
import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification.errata import PAPERS, SPECIMENS, Row, Specimen
from ledgerwood.verification.errata.base import Deterministic

every = pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
DETERMINISTIC = [specimen for specimen in SPECIMENS if isinstance(specimen, Deterministic)]


def test_names_are_unique_and_begin_with_the_paper():
    names = [specimen.name for specimen in SPECIMENS]
    assert len(set(names)) == len(names) >= 69
    assert {name.split("-")[0] for name in names} == {
        "sgbdt",
        "dpboost",
        "dpxgboost",
        "federated",
        "privatree",
        "peers",
    }
    assert all(s.name.split("-")[0] == s.anchor.split("-")[1] for s in SPECIMENS)
    assert [(paper, s.name.split("-")[0]) for paper, members in PAPERS.items() for s in members] == [
        (s.name.split("-")[0],) * 2 for s in SPECIMENS
    ]


def test_class_names_are_unique_and_every_specimen_of_a_module_is_listed():
    kinds = {kind for kind in below(Specimen) if kind.__module__.startswith("ledgerwood.") and final(kind)}
    assert {(kind.__module__, kind.__name__) for kind in kinds} == {
        (type(s).__module__, type(s).__name__) for s in SPECIMENS
    }
    assert len({type(s).__name__ for s in SPECIMENS}) == len(SPECIMENS)


def below(kind):
    return {kind, *(found for sub in kind.__subclasses__() for found in below(sub))}


def final(kind):
    return kind.__dict__.get("__final__", False)


@every
def test_a_specimen_is_a_frozen_final_value_and_no_trainer(specimen):
    assert isinstance(specimen, Specimen)
    assert type(specimen)() == specimen
    assert hash(specimen) == hash(type(specimen)())
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError, AttributeError)):
        specimen.name = "another"
    assert getattr(type(specimen), "__final__", False)
    assert not {"fit", "predict", "partial_fit"} & set(dir(specimen))


@pytest.mark.slow_after(9)  # the exact loss of each specimen
@every
def test_the_claim_fails_at_the_witness(specimen):
    assert specimen.delta(specimen.witness) > 1.1 * specimen.claimed_delta(specimen.witness)
    assert specimen.rows()[0] == Row(
        f"delta at epsilon {specimen.witness:.4g}",
        specimen.claimed_delta(specimen.witness),
        specimen.delta(specimen.witness),
    )
    assert all(row.exact > row.claimed for row in specimen.rows() if row.quantity != "noise multiplier")


@every
def test_the_claim_is_under_the_adjacency_of_the_pair(specimen):
    if isinstance(specimen.claim, (Event, Budget)):
        assert specimen.claim.adjacency is specimen.adjacency
    with_row, without = specimen.pair
    if specimen.adjacency is Adjacency.REPLACE_ONE:
        assert with_row.shape == without.shape
        assert np.count_nonzero(with_row != without) == 1
    else:
        rows = list(map(tuple, np.atleast_2d(with_row.T).T))
        for row in map(tuple, np.atleast_2d(without.T).T):
            rows.remove(row)
        assert len(rows) == 1


@pytest.mark.slow_after(9)  # the exact loss of each specimen
@every
def test_delta_is_a_falling_convex_profile_of_e_to_the_epsilon(specimen):
    epsilons = np.linspace(0.0, 3.0, 13)
    deltas = np.array([specimen.delta(epsilon) for epsilon in epsilons])
    assert (deltas >= 0.0).all()
    assert (deltas <= 1.0).all()
    assert (np.diff(deltas) <= 1e-15).all()
    slopes = np.diff(deltas) / np.diff(np.exp(epsilons))
    assert (np.diff(slopes) >= -1e-12).all()


class Coin(Deterministic):
    """A specimen whose claim is given."""

    def __init__(self, claim):
        self._claim = claim

    claim = property(lambda self: self._claim)
    pair = property(lambda self: (np.ones(1), np.ones(0)))

    def output(self, dataset):
        return (float(dataset.size),)


def test_each_kind_of_claim_is_a_curve():
    adjacency = Adjacency.ADD_REMOVE
    budget = Coin(Budget(epsilon=1.0, delta=0.25, adjacency=adjacency))
    implied = 1.0 - 0.75 * (1.0 + math.exp(0.5)) / (1.0 + math.exp(1.0))
    assert [budget.claimed_delta(epsilon) for epsilon in (0.5, 1.0, 2.0)] == [pytest.approx(implied), 0.25, 0.25]
    event = Coin(LaplaceEvent(noise_multiplier=1.0, adjacency=adjacency))
    assert event.claimed_delta(0.5) == pytest.approx(1 - math.exp(-0.25), rel=1e-12)
    assert Coin(lambda epsilon: 0.1 * math.exp(-epsilon)).claimed_delta(2.0) == 0.1 * math.exp(-2.0)
    assert budget.rows() == (Row("delta at epsilon 100", 0.25, 1.0),)


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf, 701.0, "1"])
def test_an_epsilon_out_of_range_is_refused(wrong):
    """The range is tested in one place, which no specimen can override."""
    for curve in (SPECIMENS[0].delta, SPECIMENS[0].claimed_delta):
        with pytest.raises(InvalidParameter, match=r"epsilon=.*nats"):
            curve(wrong)
    assert Specimen.delta.__final__
    assert Specimen.claimed_delta.__final__


@pytest.mark.slow_after(9)  # the exact loss of each specimen
@every
def test_the_whole_range_has_a_number(specimen):
    for epsilon in (0.0, 100.0, 700.0):
        assert 0.0 <= specimen.delta(epsilon) <= 1.0
        assert 0.0 <= specimen.claimed_delta(epsilon) <= 1.0


@every
def test_the_sampler_gives_n_outputs_and_takes_its_randomness_from_rng(specimen):
    for dataset in specimen.pair:
        first, again, other = (specimen.sampler(dataset, 50, np.random.default_rng(seed)) for seed in (1, 1, 2))
        assert first.shape == again.shape == other.shape
        assert first.shape[0] == 50
        assert np.isfinite(first).all()
        np.testing.assert_array_equal(first, again)
        assert isinstance(specimen, Deterministic) or not np.array_equal(first, other)


@pytest.mark.parametrize("specimen", DETERMINISTIC, ids=lambda specimen: specimen.name)
def test_a_deterministic_specimen_is_one_point_on_each_side(specimen):
    points = [np.unique(specimen.sampler(d, 20, np.random.default_rng(3)), axis=0) for d in specimen.pair]
    assert points[0].shape == points[1].shape == (1, points[0].shape[1])
    assert not np.array_equal(*points)
    assert [specimen.delta(epsilon) for epsilon in (0.0, 1.0, 700.0)] == [1.0, 1.0, 1.0]


NOISE_42 = float(np.random.default_rng(42).laplace(0.0, 1 / 1.1))
OUTPUTS = {
    "sgbdt-stops-when-spent": ((100,), (0,)),
    "sgbdt-small-nodes": ((1,), (0,)),
    "sgbdt-label-range": ((4, 29), (4, 9)),
    "sgbdt-majority-class": ((1,), (0,)),
    "sgbdt-exported-counts": ((4,), (3,)),
    "dpboost-min-data-in-leaf": ((1,), (0,)),
    "dpboost-leaf-wise-growth": ((1,), (0,)),  # 4 / 2.1 + 1 / 1.1 - 1 / 3.1 is more than 2 / 1.1
    "dpboost-quantile-bins": ((3,), (2,)),
    "dpboost-label-scaling": ((1, 29), (1, 9)),
    "dpboost-boost-from-average": ((0.5 / 3,), (-0.25,)),
    "dpboost-saved-counts": ((4,), (3,)),
    "dpboost-fixed-seeds": ((1 / 1.1 + NOISE_42,), (NOISE_42,)),
    "dpxgboost-min-child-weight": ((1,), (0,)),
    "dpxgboost-model-statistics": ((3, -0.25 / 3.1), (2, 0.25 / 2.1)),
    "federated-data-bounds": ((7.75,), (2.90625,)),
    "federated-skew-sign": ((1,), (0,)),
    "federated-class-number": ((3,), (2,)),
    "federated-node-counts": ((4,), (3,)),
    "privatree-pure-node": ((1,), (0,)),
    "privatree-single-row": ((1,), (0,)),
    "privatree-label-classes": ((3,), (2,)),
    "privatree-feature-range": ((2,), (0.5,)),
    "peers-data-classes": ((3,), (2,)),
    "peers-data-bounds": ((17, 90), (17, 45)),
    "peers-largest-weight": ((6,), (2,)),
}
"""With the row, and without it."""


@pytest.mark.parametrize("specimen", DETERMINISTIC, ids=lambda specimen: specimen.name)
def test_the_outputs_without_noise(specimen):
    found = [specimen.output(dataset) for dataset in specimen.pair]
    assert found == [pytest.approx(output, rel=1e-15) for output in OUTPUTS[specimen.name]]


def test_every_specimen_without_noise_has_its_outputs_here():
    assert [specimen.name for specimen in DETERMINISTIC] == list(OUTPUTS)


@pytest.mark.slow_after(1)  # the exact loss of each specimen
@pytest.mark.parametrize("specimen", DETERMINISTIC, ids=lambda specimen: specimen.name)
def test_the_librarys_models_differ_in_their_released_values_only(specimen, public_part):
    """Complete trees of a declared schema, the same with the row and without it."""
    with_row = specimen.pair[0]
    low, high = min(0.0, float(with_row.min())), max(1.0, float(with_row.max()))
    schema = lw.Schema.uniform(low, high, target=lw.Numeric("y", low, high))
    shown = []
    for rows in specimen.pair:
        table = rows.reshape(len(rows), with_row[0].size)
        model = SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=3, max_depth=3, random_state=1)
        shown.append(public_part(model, table, table[:, -1]))
    assert shown[0] == shown[1]
    assert shown[0][1] == ["initial_score", "noise", "values", "weights"]
    assert np.shape(shown[0][0]["feature"]) == (3, 7)
