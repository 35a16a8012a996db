"""Every specimen is caught by its own auditor, and nobody is who keeps the claim."""

import dataclasses
import math
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata import SPECIMENS, default_samples, find, run_specimen
from ledgerwood.verification.errata.base import Deterministic
from ledgerwood.verification.errata.outputs import Finite

ALPHA = 0.001
A = lw.Adjacency.ADD_REMOVE
SLOW = {
    "sgbdt-half-hessian-noise",
    "sgbdt-renyi-conversion",
    "sgbdt-clock-seeded-sample",
    "dpxgboost-replaced-sample",
}
every = pytest.mark.parametrize(
    "specimen",
    [pytest.param(s, marks=pytest.mark.slow) if s.name in SLOW else s for s in SPECIMENS],
    ids=lambda specimen: specimen.name,
)


def rng(*words):
    return np.random.default_rng([62, *words])


@pytest.mark.slow_after(1)  # each specimen is drawn and audited
@every
def test_its_auditor_catches_it(specimen):
    found = run_specimen(specimen, alpha=ALPHA, rng=rng(1))
    assert found.caught
    assert found.specimen == specimen.name
    assert found.auditor == specimen.auditor
    assert (found.claimed_delta, found.exact_delta) == (
        specimen.claimed_delta(specimen.witness),
        specimen.delta(specimen.witness),
    )
    assert found.assumption == "none"
    assert found.samples > 0.3 * default_samples(specimen, alpha=ALPHA)
    # A bound above the truth has probability .001, 70 of them together .07: this seed has none.
    epsilon, delta = (found.bound, found.at) if found.quantity == "epsilon" else (found.at, found.bound)
    assert specimen.delta(min(epsilon, 700.0)) >= delta


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Honest(Finite):
    """Randomised response that keeps its claim exactly."""

    name: ClassVar[str] = "honest"
    source: ClassVar[str] = "Warner 1965"
    anchor: ClassVar[str] = "errata-none"
    verdict: ClassVar[str] = "unsound"
    adjacency: ClassVar[lw.Adjacency] = A
    auditor: ClassVar[str] = "black-box"
    claim = property(lambda self: lw.PureEvent(epsilon=1.0, adjacency=A))
    pair = property(lambda self: (np.ones(1), np.zeros(1)))
    witness = property(lambda self: 0.5)

    def distribution(self, dataset):
        truth = 1 / (1 + math.exp(-1.0))
        return np.array([truth, 1 - truth] if dataset[0] else [1 - truth, truth])


class HonestLikelihood(Honest):
    auditor = "likelihood ratio"


class HonestBits(Honest):
    auditor = "bitwise"


class Public(Deterministic):
    """Says the same on both data sets."""

    name, source, anchor, verdict, adjacency = "public", "nowhere", "errata-none", "unsound", A
    claim = property(lambda self: lw.PureEvent(epsilon=1.0, adjacency=A))
    pair = property(lambda self: (np.ones(2), np.ones(1)))

    def output(self, dataset):
        return (1.0, 2.0)


@pytest.mark.slow_after(1)  # audits of specimens
@pytest.mark.parametrize("kind", [Honest, HonestLikelihood, HonestBits, Public])
def test_who_keeps_the_claim_is_not_caught(kind):
    """Ten runs at .001: one that is caught has probability .01 at most."""
    findings = [run_specimen(kind(), n=4_000, alpha=ALPHA, rng=rng(2, seed)) for seed in range(10)]
    assert [found.caught for found in findings] == [False] * 10
    assert all(found.bound <= 1.0 for found in findings if found.quantity == "epsilon")


@pytest.mark.slow  # audits of specimens
def test_the_known_event_of_an_honest_one_is_refuted_no_more_often_than_stated():
    """400 runs at .05: 20 expected at most, and four standard deviations."""
    caught = sum(run_specimen(HonestLikelihood(), n=1_000, alpha=0.05, rng=rng(7, seed)).caught for seed in range(400))
    assert caught <= 20 + 4 * math.sqrt(400 * 0.05 * 0.95)


@pytest.mark.slow_after(4)  # audits of specimens
@pytest.mark.parametrize("name", [s.name for s in SPECIMENS][::7])
def test_the_same_seed_finds_the_same(name):
    specimen = find(name, SPECIMENS)
    first, again = (run_specimen(specimen, n=20_000, alpha=ALPHA, rng=rng(4)) for _ in range(2))
    assert dataclasses.replace(first, seconds=0.0) == dataclasses.replace(again, seconds=0.0)


@pytest.mark.parametrize("name", ["peers-data-classes", "peers-target-weight", "dpboost-subset-sizes"])
@pytest.mark.parametrize("few", [1, 10])
def test_too_few_outputs_are_refused_with_the_number_that_is_needed(name, few):
    with pytest.raises(InvalidParameter, match=rf"n={few} must be at least \d+.*takes about \d+"):
        run_specimen(find(name, SPECIMENS), n=few, rng=rng(5))


@pytest.mark.parametrize("wrong", [0, -3, 1.5, True])
def test_an_n_that_is_no_number_of_outputs_is_refused(wrong):
    with pytest.raises(InvalidParameter, match="n="):
        run_specimen(SPECIMENS[0], n=wrong)


def test_an_unknown_name_lists_near_ones():
    with pytest.raises(InvalidParameter, match=r"'sgbdt-label-rang' is unknown; near names: sgbdt-label-range"):
        find("sgbdt-label-rang", SPECIMENS)
    with pytest.raises(InvalidParameter, match=r"near names: .*, "):
        find("%%%", SPECIMENS)


def test_a_likelihood_ratio_must_be_written_down():
    class Unwritten(type(find("sgbdt-initial-score-scale", SPECIMENS))):
        auditor = "likelihood ratio"

    with pytest.raises(InvalidParameter, match="log_ratio"):
        run_specimen(Unwritten(), n=4_000, rng=rng(6))


@pytest.mark.parametrize("specimen", [s for s in SPECIMENS if isinstance(s, Finite)], ids=lambda s: s.name)
def test_finite_log_ratios_are_those_of_the_laws(specimen):
    p, q = (specimen.distribution(part) for part in specimen.pair)
    possible = np.flatnonzero((p > 0) | (q > 0))
    ratios = specimen.log_ratio(possible.astype(float))
    assert specimen.pure_epsilon() == np.abs(ratios).max()
    epsilon = min(specimen.witness, 1.0)
    inside = possible[ratios > epsilon]
    outside = possible[-ratios > epsilon]
    found = max(
        float((p[inside] - math.exp(epsilon) * q[inside]).sum()),
        float((q[outside] - math.exp(epsilon) * p[outside]).sum()),
    )
    assert found == pytest.approx(specimen.delta(epsilon), rel=1e-9)


def test_the_log_ratio_of_merged_weights():
    specimen = find("peers-target-weight", SPECIMENS)
    more, less = (part.size / specimen.max_bins for part in specimen.pair)
    merged, only, both = specimen.log_ratio(np.array([0.0, 0.5 * (more + less), more + 1.0]))
    assert merged == pytest.approx(
        math.log(stats.norm.cdf(more / specimen.stddev) / stats.norm.cdf(less / specimen.stddev)), rel=1e-9
    )
    assert (only, both) == (-math.inf, 0.0)
