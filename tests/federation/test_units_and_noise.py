"""Noise that owners add in shares, and whole contributions as privacy units."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import ledgerwood as lw
from ledgerwood.curator import LeafCurvatures, LeafMoments
from ledgerwood.curator.places.whole_contributions import whole_contribution
from ledgerwood.curator.queries.leaf_sums import WholeSums
from ledgerwood.curator.tables.trees import Table
from ledgerwood.ensemble import TreeStructure
from ledgerwood.errors import RoundViolation
from ledgerwood.federation.codec import unpack
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.run import federate
from ledgerwood.federation.training import train
from ledgerwood.mechanisms import (
    EllipticalGaussianMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    SkellamMechanism,
)
from ledgerwood.trainers import FederatedGBDTClassifier, PrivateBoostingClassifier, SGBDTClassifier

from .conftest import SCHEMA, Wire, parts, rows

A = lw.Adjacency.ADD_REMOVE
COMMON = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-5}
SKELLAM = {**COMMON, "candidates": "uniform", "noise": "skellam", "max_depth": 2}


class Releases:
    """The noisy sums of one question of fits by federations that differ in nothing but their randomness."""

    def __init__(self, monkeypatch):
        from ledgerwood.federation.session import FederationSession

        self.sums = []
        whole = FederationSession.sums

        def kept(session, question):
            found = whole(session, question)
            self.sums.append((question, found))
            return found

        monkeypatch.setattr(FederationSession, "sums", kept)


TREES = {**SKELLAM, "n_estimators": 32, "max_depth": 3}


@pytest.mark.parametrize(("clients", "options", "honest"), [(3, {}, 2), (6, {"colluding": 0.34, "dropouts": 0.17}, 3)])
def test_the_server_sees_sums_with_the_whole_noise_in_them(clients, options, honest, monkeypatch):
    """What the server sees less the exact sums has the stated distribution: variance v n / h, by chi-square."""
    releases = Releases(monkeypatch)
    X, y = rows(10 * clients)
    given_rows = parts(X, y, (10,) * clients)
    for _ in range(2):
        federate(FederatedGBDTClassifier(**TREES), given_rows, "clients", engine="process", **options)
    table = Table.from_data(X, y, SCHEMA, loss="logistic", bins=32)
    everybody = np.empty(0, dtype=np.bool_)
    noise = np.concatenate(
        [
            ((found - table.statistic(question.query, everybody)) / np.sqrt(question.mechanism.variance)).ravel()
            for question, found in releases.sums
        ]
    )
    ratio = clients / honest
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], len(noise)) / len(noise)
    assert low < noise.var() / ratio < high
    assert ratio >= 1.0
    assert stats.kstest(noise / np.sqrt(ratio), "norm").pvalue > 1e-6  # of 2**13 units, a normal number to 1e-4


def test_each_clients_upload_has_its_share_of_the_noise_before_it_is_masked(monkeypatch):
    """An owner's own vector, without its masks, has noise of variance v / h: nobody relies on the others' masks."""
    from ledgerwood.curator.places.owner_rows import OwnerRows

    seen, whole = [], OwnerRows.sums

    def kept(own, question, coins, offset, *, noise=None, whole_=None, **named):
        found = whole(own, question, coins, offset, noise=noise, **named)
        exact = whole(own, question, coins, offset, **named)
        seen.append(((found - exact).ravel(), question.mechanism.variance))
        return found

    monkeypatch.setattr(OwnerRows, "sums", kept)
    X, y = rows(30)
    for _ in range(2):
        federate(FederatedGBDTClassifier(**TREES), parts(X, y, (10, 10, 10)), "clients", engine="process")
    noise = np.concatenate([each / np.sqrt(variance) for each, variance in seen])
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], len(noise)) / len(noise)
    assert low < noise.var() * 2 < high  # three owners, one of them curious: h = 2


def test_an_owner_adds_no_noise_that_it_was_not_asked_to_and_leaves_none_out(owners):
    X, y = rows(60)
    group = owners(parts(X, y, (30, 30)), noise="clients")
    wire = Wire(group)
    found = train(FederatedGBDTClassifier(**SKELLAM, n_estimators=2), wire, FederationOptions(noise="clients"))
    assert any("holds against the server too" in text for text in found.privacy_.assumptions)
    asks = [unpack(request) for _, what, request, _ in wire.seen if what == "upload"]
    assert asks
    forged = dataclasses.replace(asks[-1], round=9, is_choice=True)
    from ledgerwood.federation.codec import pack

    assert "RoundViolation" in unpack(group.all[0].answer(pack(forged))).reason


# -------------------------------------------------------------------------------------------------- whole contributions

LEAVES = TreeStructure.root()
STATISTICS = {
    "ball": (LeafCurvatures(clip=1.0, curvature_scale=1.0), GaussianMechanism(stddev=3.0)),
    "ellipse": (LeafMoments(loss="squared", clip=0.5), EllipticalGaussianMechanism(stddevs=(5.0, 0.25))),
    "whole": (
        WholeSums(leaf=LeafCurvatures(clip=1.0, curvature_scale=1.0), bits=8), SkellamMechanism(variance=1e6),
    ),
}  # fmt: skip


def norm(values, statistic, mechanism):
    stddevs = mechanism.stddevs if isinstance(mechanism, EllipticalGaussianMechanism) else (1.0, 1.0)
    steps = statistic.grid.steps
    return sum(
        (Fraction(int(v)) * Fraction(step) / Fraction(stddev)) ** 2
        for row in values
        for v, step, stddev in zip(row, steps, stddevs, strict=True)
    ), Fraction(statistic.sensitivity(A).l2(stddevs)) ** 2


@given(
    name=st.sampled_from(sorted(STATISTICS)),
    values=st.lists(st.tuples(*[st.integers(-(2**60), 2**60)] * 2), min_size=1, max_size=8),
    rows_per_client=st.integers(1, 10**6),
)
@settings(max_examples=300, deadline=None)
def test_a_whole_contribution_is_within_the_shift_of_a_row(name, values, rows_per_client):
    statistic, mechanism = STATISTICS[name]
    sums = np.array(values, dtype=np.int64)
    found = whole_contribution(sums, statistic, mechanism, A, rows_per_client=rows_per_client)
    squared, bound = norm(found, statistic, mechanism)
    assert squared <= bound
    assert (np.sign(found) * np.sign(sums) >= 0).all()
    assert (np.abs(found) <= np.abs(sums) // rows_per_client).all()
    small, _ = norm(np.abs(sums) // rows_per_client, statistic, mechanism)
    if small <= bound:  # what fits is kept as it is
        assert np.array_equal(np.abs(found), np.abs(sums) // rows_per_client)


def test_little_is_lost_beyond_the_norm():
    statistic, mechanism = STATISTICS["ball"]
    found = whole_contribution(np.full((4, 2), 2**50), statistic, mechanism, A, rows_per_client=1)
    squared, bound = norm(found, statistic, mechanism)
    assert float(squared / bound) > 1 - 1e-4


def test_other_noise_is_refused():
    statistic, _ = STATISTICS["ellipse"]
    with pytest.raises(RoundViolation, match="Gaussian or Skellam noise, not LaplaceMechanism"):
        whole_contribution(
            np.ones((1, 2), np.int64), statistic, LaplaceMechanism(scales=(1.0, 1.0)), A, rows_per_client=1
        )


@pytest.mark.parametrize("noise", ["gaussian", "skellam"])
@pytest.mark.parametrize("name", ["S-GBDT", "framework", "boosting"])
def test_neighbours_that_differ_by_a_client_are_within_the_priced_shift(name, noise, monkeypatch):
    """Each release's exact sums with and without one client, whose rows are as extreme as they can be."""
    made, more = {
        "S-GBDT": (SGBDTClassifier, {}),
        "framework": (FederatedGBDTClassifier, {}),
        "boosting": (PrivateBoostingClassifier, {"candidates": "even"}),
    }[name]
    estimator = lambda: made(**COMMON, **more, noise=noise, n_estimators=4, max_depth=2, random_state=3)  # noqa: E731
    X, y = rows(60)
    extreme = (np.ones((500, 3)), np.repeat("yes", 500)), (np.zeros((0, 3)), np.array([], dtype=str))
    seen = []
    for last in extreme:
        clients = [*parts(X, y, (20, 40)), last]
        with monkeypatch.context() as patch:
            releases = Releases(patch)
            federate(estimator(), clients, unit=lw.PrivacyUnit.USER, rows_per_client=5, engine="process")
        seen.append(releases.sums)
    (question, with_), (_, without) = seen[0][0], seen[1][0]  # later trees are grown on other scores
    squared, bound = norm(with_ - without, question.query, question.mechanism)
    assert 0 < squared <= bound


def test_the_statement_names_the_unit():
    X, y = rows(60)
    found = federate(
        SGBDTClassifier(**COMMON, n_estimators=2), parts(X, y, (30, 30)), unit=lw.PrivacyUnit.USER, engine="process"
    )
    assert found.privacy_.unit is lw.PrivacyUnit.USER
    assert any("each client" in text for text in found.privacy_.assumptions)
    assert not any(text == "each row is one privacy unit" for text in found.privacy_.assumptions)
