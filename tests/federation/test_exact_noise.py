"""Noise that owners share: the law of the unmasked sums is compared with the exact one, number by number."""

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

import ledgerwood as lw
from ledgerwood.curator.places.federated_rows import FitTerms, OwnersDraw, OwnersQuestion
from ledgerwood.curator.places.owner_rows import OwnerRows
from ledgerwood.curator.queries.row_counts import LeafCounts
from ledgerwood.ensemble import TreeStructure
from ledgerwood.federation.options import FederationOptions, Tolerance
from ledgerwood.federation.session import FederationSession
from ledgerwood.mechanisms import SkellamMechanism

from .conftest import SCHEMA, Wire, parts, rows

A = lw.Adjacency.ADD_REMOVE
DEPTH, ROUNDS = 9, 6
NODES = 2**DEPTH - 1
COUNTS = LeafCounts().of(
    TreeStructure(
        feature=(np.arange(NODES) % 3).astype(np.int32),
        split=(np.arange(NODES) * 7 % 32).astype(np.uint16),
        equals=np.zeros(NODES, dtype=np.bool_),
    )
)
NOISE = SkellamMechanism(variance=3.0)
"""So little that single whole numbers can be told apart: no limit theorem helps."""


def pmf(variance, reach):
    """Probabilities of Skellam noise at -reach .. reach, and of all beyond, by mpmath's Bessel functions."""
    with mpmath.workdps(30):
        v = mpmath.mpf(variance)
        inside = [mpmath.exp(-v) * mpmath.besseli(abs(k), v) for k in range(-reach, reach + 1)]
        return np.array([float(each) for each in (*inside, 1 - mpmath.fsum(inside))])


def fits(noise, variance):
    """The p-value of Pearson's test of whole numbers against Skellam noise of some variance."""
    reach = int(2.4 * np.sqrt(variance))
    expected = len(noise) * pmf(variance, reach)
    inside = [np.count_nonzero(noise == k) for k in range(-reach, reach + 1)]
    counts = np.array([*inside, len(noise) - sum(inside)])
    assert expected.min() > 10
    return chi2.sf(float(((counts - expected) ** 2 / expected).sum()), len(counts) - 1)


@pytest.fixture
def shares(monkeypatch):
    """Exact sums and noise of each owner, in the order of answers."""
    found, whole = [], OwnerRows.sums

    def kept(own, *arguments, noise, **named):
        exact = whole(own, *arguments, noise=None, **named)
        noisy = whole(own, *arguments, noise=noise, **named)
        found.append((exact.ravel(), (noisy - exact).ravel()))
        return noisy

    monkeypatch.setattr(OwnerRows, "sums", kept)
    return found


@pytest.mark.parametrize(
    ("n", "options", "lost"),
    [
        (3, {}, {}),
        (6, {"colluding": 0.34, "dropouts": 0.17}, {}),
        (6, {"colluding": 0.34, "dropouts": 0.17}, {"upload": {4}}),  # the fewest survivors that are allowed
        (6, {"colluding": 0.34, "dropouts": 0.17}, {"columns": {4}, "hello": {4}}),  # never joined
        (6, {"dropouts": 0.34}, {"upload": {1}, "unmask": {3}}),  # who does not open is in the sum all the same
    ],
)  # fmt: skip
def test_the_total_has_the_stated_law_and_the_honest_carry_the_plan(n, options, lost, owners, shares, monkeypatch):
    monkeypatch.setattr("ledgerwood.federation.session._PAUSE", 0.0)
    X, y = rows(40 * n)
    group = owners(parts(X, y, (40,) * n), allow_seed=False)
    given = FederationOptions(noise="clients", **options)
    wire = Wire(group, lambda number, what, count: "there" if number in lost.get(what, ()) else None)
    session = FederationSession(wire, given)
    one = NOISE.event(COUNTS.sensitivity(A), A)
    session.head(SCHEMA)
    fit = FitTerms(
        trainer="counts", event=lw.Repeated(one, count=ROUNDS), delta=1e-4, schema=SCHEMA, loss="logistic", bins=32,
        seeded=False,
    )  # fmt: skip
    totals, own = [], []
    with session.session(fit):
        session.begin()
        for number in range(1, ROUNDS + 1):
            del shares[:]
            draw = OwnersDraw(number=number, event=one, rate=1.0)
            question = OwnersQuestion(query=COUNTS, mechanism=NOISE, is_choice=False, draw=draw)
            total = session.sums(question).ravel()
            exact = sum(each for each, _ in shares)
            totals.append(total - exact)
            own.append([noise for _, noise in shares])
            np.testing.assert_array_equal(totals[-1], sum(own[-1]))  # masks are gone, to the last bit
    survivors = session.record.rounds[-1].survivors
    tolerance = Tolerance(**options)
    honest, least = tolerance.honest(n), tolerance.least(n)
    share = NOISE.share(honest)
    assert len(survivors) == len(own[0]) >= least
    assert set(survivors) == set(range(n)) - lost.get("upload", set()) - lost.get("hello", set())
    # What everybody sees: Skellam noise of as many shares as survived.
    assert fits(np.concatenate(totals), len(survivors) * share.variance) > 1e-6
    # What a coalition sees that knows its own shares and asked for the fewest survivors: the planned noise, whole.
    left = np.concatenate([sum(each[len(each) - honest :]) for each in own])
    assert honest * share.variance >= NOISE.variance
    assert fits(left, honest * share.variance) > 1e-6
    assert fits(np.concatenate([each[0] for each in own]), share.variance) > 1e-6
    # The test has teeth: a sum that lacks one share is told apart.
    assert fits(np.concatenate(totals), (len(survivors) - 1) * share.variance) < 1e-6


def test_the_law_tells_noise_of_another_kind_apart():
    """Rounded normal noise of the same variance, and shares that are the same at all owners, do not pass."""
    generator = np.random.default_rng(20_261_128)
    n = 3_000
    poisson = [generator.poisson(1.5, (4, n)) for _ in range(2)]
    assert fits((poisson[0] - poisson[1]).sum(axis=0), 12.0) > 1e-6
    assert fits(np.rint(generator.normal(0.0, np.sqrt(3.0), n)).astype(int), 3.0) < 1e-2
    assert fits(2 * (poisson[0][0] - poisson[1][0]), 6.0) < 1e-6
