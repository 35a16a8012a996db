"""Noise against its own law: right samplers pass, wrong ones do not, and every score is what it is said to be."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter, ReplayFailed
from ledgerwood.mechanisms import (
    CategoricalCandidates,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    EllipticalGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    Grid,
    GridlessMechanism,
    LaplaceMechanism,
    NumericCandidates,
    PermuteAndFlipMechanism,
    SeededRandom,
    SkellamMechanism,
)
from ledgerwood.trainers import DPBoostClassifier, PrivaTreeClassifier, SGBDTRegressor
from ledgerwood.verification.noise.law import check_fit_noise, check_noise
from ledgerwood.verification.noise.record import NoiseRecord, choice_uniform, noise_tests
from ledgerwood.verification.noise.tails import tails_of

WHOLE = Grid(exponents=(0,))
SUMS = [
    GaussianMechanism(stddev=0.3),
    GaussianMechanism(stddev=2.0**40),
    EllipticalGaussianMechanism(stddevs=(0.01, 50.0)),
    LaplaceMechanism(scales=(0.7,)),
    LaplaceMechanism(scales=(1e-3, 1e3)),
    DiscreteGaussianMechanism(scale=0.4),
    DiscreteGaussianMechanism(scale=30.0),
    DiscreteLaplaceMechanism(scale=0.3),
    DiscreteLaplaceMechanism(scale=1e6),
    SkellamMechanism(variance=0.5),
    SkellamMechanism(variance=1e6),
]


def scaled(mechanism, factor):
    """The same family with `factor` times the noise."""
    match mechanism:
        case GaussianMechanism(stddev=stddev):
            return GaussianMechanism(stddev=factor * stddev)
        case EllipticalGaussianMechanism(stddevs=stddevs):
            return EllipticalGaussianMechanism(stddevs=tuple(factor * s for s in stddevs))
        case LaplaceMechanism(scales=scales):
            return LaplaceMechanism(scales=tuple(factor * s for s in scales))
        case SkellamMechanism(variance=variance):
            return SkellamMechanism(variance=factor**2 * variance)
    return dataclasses.replace(mechanism, scale=factor * mechanism.scale)


@pytest.mark.slow_after(2)  # many replays and searches
@pytest.mark.parametrize("place", range(len(SUMS)), ids=lambda i: repr(SUMS[i]))
def test_right_noise_passes_and_other_noise_does_not(place, monkeypatch):
    mechanism = SUMS[place]
    right = check_noise(mechanism, draws=20_000, source=SeededRandom(9000 + place))
    assert not right.rejected, right
    assert not right.too_little
    assert right.draws == 20_000
    # Of alpha .001, by chance alone the interval misses 1 with probability .001; at this seed it does not.
    assert right.scale_low < 1.0 < right.scale_high
    alone = type(mechanism).randomise
    monkeypatch.setattr(
        type(mechanism), "randomise", lambda self, *rest: alone(scaled(self, 0.9), *rest)
    )  # the event and the fields still say 1
    wrong = check_noise(mechanism, draws=20_000, source=SeededRandom(9100 + place))
    assert wrong.rejected, wrong


@pytest.mark.parametrize("mechanism", [GaussianMechanism(stddev=2.0), LaplaceMechanism(scales=(2.0,))])
def test_the_scale_is_measured(mechanism, monkeypatch):
    alone = type(mechanism).randomise
    monkeypatch.setattr(type(mechanism), "randomise", lambda self, *rest: alone(scaled(self, 0.5), *rest))
    found = check_noise(mechanism, draws=10_000, source=SeededRandom(3))
    # The interval has level .999, and its width is 3.29 / sqrt(2 n) or 3.29 / sqrt(n) relative: 3.3 % at most.
    assert found.scale_low < 0.5 < found.scale_high
    assert found.scale == pytest.approx(0.5, rel=0.033)
    assert found.too_little
    assert "another distribution" in str(found)


FAULTS = {
    "shifted": (lambda noise: noise + 300_000, "location"),
    "cut off": (lambda noise: np.clip(noise, -1_400_000, 1_400_000), "far"),  # at 2.7 standard deviations
    "uniform": (lambda noise: (noise % 2_000_000) - 1_000_000, "shape"),
    "once for two rows": (lambda noise: np.repeat(noise[::2], 2, axis=0)[: len(noise)], "neighbours"),
    "none": (lambda noise: 0 * noise, "scale"),
    "of one sign": (np.abs, "location"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_other_faults_are_named(fault, monkeypatch):
    change, test = FAULTS[fault]
    alone = GaussianMechanism.randomise
    monkeypatch.setattr(
        GaussianMechanism, "randomise", lambda self, sums, *rest: sums + change(alone(self, 0 * sums, *rest))
    )
    found = check_noise(GaussianMechanism(stddev=1.0), draws=10_000, source=SeededRandom(5))
    low = {name.rpartition(" ")[2] for name, p in found.p_values if p < found.alpha / len(found.p_values)}
    assert test in low, found


QUIET = {
    "once for both columns": (lambda noise: np.repeat(noise[:, :1], 2, axis=1), "columns"),
    "cut off far out": (lambda noise: np.clip(noise, -3_400_000, 3_400_000), "Gaussian: farthest"),
}


@pytest.mark.parametrize("fault", QUIET)
def test_faults_that_leave_scale_and_shape_alone_are_named(fault, monkeypatch):
    """Cut off at 3.4e6 / 2**20 = 3.24 deviations: no number of 20,000 beyond has probability (1 - .0012)**20000."""
    change, test = QUIET[fault]
    alone = EllipticalGaussianMechanism.randomise
    monkeypatch.setattr(
        EllipticalGaussianMechanism, "randomise", lambda self, sums, *rest: sums + change(alone(self, 0 * sums, *rest))
    )
    found = check_noise(
        EllipticalGaussianMechanism(stddevs=(1.0, 64.0)), draws=20_000, grid=Grid(exponents=(-20, -14)),
        source=SeededRandom(5),
    )  # fmt: skip
    low = [name for name, p in found.p_values if p < found.alpha / len(found.p_values)]
    assert low == ([test, "repeats"] if test == "columns" else [test])  # the next number of the call is the same, too


def test_a_sampler_with_a_seed_of_its_own_is_found(monkeypatch):
    alone = LaplaceMechanism.randomise
    monkeypatch.setattr(
        LaplaceMechanism, "randomise", lambda self, sums, grid, source: alone(self, sums, grid, SeededRandom(3))
    )
    found = check_noise(LaplaceMechanism(scales=(1.0,)), draws=1001)
    assert [name for name, p in found.p_values if p < found.alpha / len(found.p_values)] == ["releases"]


def test_noise_that_depends_on_the_value_is_found(monkeypatch):
    alone = GaussianMechanism.randomise

    def shrinking(self, sums, *rest):
        return sums + np.where(sums == 0, alone(self, 0 * sums, *rest), 0)

    monkeypatch.setattr(GaussianMechanism, "randomise", shrinking)
    assert check_noise(GaussianMechanism(stddev=1.0), draws=1000, source=SeededRandom(5)).rejected


@pytest.mark.slow  # a rate of error needs many draws
def test_right_noise_is_refused_no_more_often_than_alpha():
    """1000 checks at alpha .05: 50 are expected, and more than 78 have probability 1e-4 (binomial, exact)."""
    mechanism = LaplaceMechanism(scales=(1.0, 3.0))
    source = SeededRandom(17)
    refused = sum(
        check_noise(mechanism, draws=60, alpha=0.05, source=source, seed=seed).rejected for seed in range(1000)
    )
    assert stats.binom.sf(78, 1000, 0.05) < 1e-4
    assert refused <= 78


@pytest.mark.parametrize("mechanism", [m for m in SUMS if not isinstance(m, EllipticalGaussianMechanism)])
def test_tails_are_the_probabilities_of_the_drawn_numbers(mechanism):
    """The whole laws, by scipy and by hand, to 1e-9: Pr(|X| >= m) at a few m."""
    if isinstance(mechanism, LaplaceMechanism) and len(mechanism.scales) > 1:
        mechanism = LaplaceMechanism(scales=(3.0,))

    class Zero:
        def random(self, shape):
            return np.zeros(shape)  # V = 1: the tail includes the number itself

    spread = {
        GaussianMechanism: lambda m: m.stddev,
        LaplaceMechanism: lambda m: m.scales[0],
        SkellamMechanism: lambda m: math.sqrt(m.variance),
    }.get(type(mechanism), lambda m: m.scale)(mechanism)
    steps = np.unique(np.round(np.array([1.0, 1.4, 3.1]) * max(spread, 1.0)).astype(np.int64))[:, None]
    found = tails_of(mechanism, steps, WHOLE, Zero())[:, 0]
    k = np.arange(-int(40 * spread) - 40, int(40 * spread) + 41) if spread < 1e3 else None
    match mechanism:
        case GaussianMechanism(stddev=s):
            wanted = 2.0 * stats.norm.sf(steps[:, 0] - 0.5, scale=s)
        case LaplaceMechanism(scales=(s,)):
            wanted = 2.0 * stats.laplace.sf(steps[:, 0] - 0.5, scale=s)
        case DiscreteLaplaceMechanism(scale=s):
            wanted = 2.0 * stats.dlaplace.sf(steps[:, 0] - 1, 1.0 / s)
        case SkellamMechanism(variance=v) if v < 10:
            wanted = 2.0 * stats.skellam.sf(steps[:, 0] - 1, v / 2, v / 2)
        case SkellamMechanism(variance=v):  # by the normal law, with the error of the fourth cumulant, 1 / (12 v)
            wanted = 2.0 * stats.norm.sf(steps[:, 0] - 0.5, scale=math.sqrt(v))
        case DiscreteGaussianMechanism(scale=s):
            weights = np.exp(-(k**2) / (2.0 * s * s))
            wanted = np.array([weights[np.abs(k) >= m].sum() for m in steps[:, 0]]) / weights.sum()
    tolerance = 1e-5 if isinstance(mechanism, SkellamMechanism) and mechanism.variance > 10 else 1e-9
    np.testing.assert_allclose(found, wanted, rtol=tolerance)


# -------------------------------------------------------------------------------------------------------------- choices


def flip_law(utilities, rate):
    """Permute and flip by the definition: every order of the candidates, each coin in turn."""
    gaps = utilities.max() - utilities
    coins = np.exp(-rate * gaps)
    found = np.zeros(len(utilities))
    for order in itertools.permutations(range(len(utilities))):
        left = 1.0
        for i in order:
            found[i] += left * coins[i]
            left *= 1.0 - coins[i]
    return found / math.factorial(len(utilities))


class Coin:
    def __init__(self, value):
        self.value = value

    def random(self):
        return self.value


@pytest.mark.parametrize("utilities", [[0, 1, 3, 3, -5], [7], [2, 2, 2], [0, 100, 1]])
def test_places_of_choices_are_sums_of_their_laws(utilities):
    utilities = np.array(utilities, dtype=np.int64)
    order = np.argsort(-utilities, kind="stable")
    weights = np.exp(0.4 * (utilities - utilities.max()))
    for mechanism, law in (
        (ExponentialMechanism(rate=0.4), weights / weights.sum()),
        (PermuteAndFlipMechanism(rate=0.4), flip_law(utilities, 0.4)),
    ):
        ends = np.cumsum(law[order])
        for rank, chosen in enumerate(order.tolist()):
            # 1 - V = 0: the whole of the chosen one.
            found = choice_uniform(mechanism, utilities, WHOLE, None, chosen, Coin(0.0))
            assert found == pytest.approx(ends[rank], rel=1e-10)


def test_a_grid_less_choice_is_a_choice_of_cells():
    numbers = NumericCandidates(
        positions=np.array([2, 2, 5]), points=8, utilities=np.array([0, 9, 4, 1]), weight=3
    )  # cells 0..1, none, 2..4, 5..7
    names = CategoricalCandidates(utilities=np.array([2, 5]), weight=2)
    flat = np.array([0, 4, 1, 2, 5])
    counts = np.array([6, 9, 9, 2, 2])
    mechanism = GridlessMechanism(rate=0.3)
    for chosen, place in (((0, 1), 0), ((0, 2), 1), ((0, 4), 1), ((0, 7), 2), ((1, 0), 3), ((1, 1), 4)):
        candidate = mechanism.select([numbers, names], WHOLE, SeededRandom(1))
        candidate = dataclasses.replace(candidate, feature=chosen[0], point=chosen[1])
        found = choice_uniform(mechanism, [numbers, names], WHOLE, None, candidate, Coin(0.25))
        plain = choice_uniform(ExponentialMechanism(rate=0.3), flat, WHOLE, counts, place, Coin(0.25))
        assert found == pytest.approx(plain, rel=1e-12)


@pytest.mark.slow_after(2)  # many replays and searches
@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlipMechanism])
@pytest.mark.parametrize("factor", [1.0, 2.0, 0.5])
def test_choices_at_another_rate_are_found(kind, factor):
    generator = np.random.default_rng(12)
    record, source = NoiseRecord(np.random.default_rng(1)), SeededRandom(8)
    for _ in range(600):
        utilities = generator.integers(0, 12, 6)
        chosen = kind(rate=0.3 * factor).select(utilities, WHOLE, source)
        record.choice(kind(rate=0.3), utilities, WHOLE, None, chosen)
    tests, scale = noise_tests(record, 1e-3)
    assert scale is None
    assert (min(p for _, p in tests) < 1e-3 / len(tests)) == (factor != 1.0)


# ----------------------------------------------------------------------------------------------------------------- fits

SCHEMA = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0, 1))
CLASSES = lw.Schema.uniform(0, 1, n_features=2, target=lw.Categorical("y", (0, 1)))
X = np.random.default_rng(2).uniform(size=(60, 2))
FITS = {
    "sums": lambda seed: SGBDTRegressor(schema=SCHEMA, random_state=seed, n_estimators=4, max_depth=2).fit(X, X[:, 0]),
    "both": lambda seed: DPBoostClassifier(
        schema=CLASSES, random_state=seed, n_estimators=4, max_depth=2, max_bins=8, epsilon=20.0
    ).fit(X, (X[:, 0] > 0.5).astype(int)),
    "choices": lambda seed: PrivaTreeClassifier(
        schema=CLASSES, random_state=seed, max_depth=3, max_bins=8, epsilon=3.0
    ).fit(X, (X[:, 0] > 0.5).astype(int)),
}


def counted(fit):
    seeds = itertools.count(40)
    return lambda: fit(next(seeds))


@pytest.mark.slow  # many replays and searches
@pytest.mark.parametrize("name", FITS)
def test_what_fits_draw_has_its_law(name):
    found = check_fit_noise(counted(FITS[name]), fits=12, alpha=1e-3)
    assert not found.rejected, found
    kinds = {test.partition(":")[0] for test, _ in found.p_values}
    assert (
        kinds - {"neighbours", "columns", "releases"}
        == {"sums": {"Gaussian"}, "both": {"Laplace", "choices"}, "choices": {"choices"}}[name]
    )
    assert found.untested == ()


def test_choices_without_a_law_are_counted():
    model = PrivaTreeClassifier(
        schema=CLASSES, random_state=3, max_depth=1, max_bins=8, candidates="quantiles", candidate_bins=3,
        split_method="gini",
    )  # fmt: skip
    found = check_fit_noise(lambda: model.fit(X, (X[:, 0] > 0.5).astype(int)), fits=20)
    assert found.untested == (("JointQuantilesMechanism", 40),)  # two features a fit


def test_a_sampler_that_passes_no_point_is_named_and_not_passed_over(monkeypatch):
    def outside(self, utilities, grid, source):
        return int(source.integers(len(utilities), 1)[0])

    monkeypatch.setattr(ExponentialMechanism, "select", outside)
    found = check_fit_noise(counted(FITS["both"]), fits=3)
    assert [name for name, _ in found.untested] == ["words outside of a mechanism"]
    assert "; not tested: " in str(found)


def test_a_release_without_noise_is_named(monkeypatch):
    """Choices are as they should be, so that there is something to test."""
    monkeypatch.setattr(LaplaceMechanism, "randomise", lambda self, sums, grid, source: sums.copy())
    found = check_fit_noise(counted(FITS["both"]), fits=8)
    assert ("LeafMoments without noise", 8 * 4) in found.untested


# ------------------------------------------------------------------------------------------------------------ bad input


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(InvalidParameter, match="must be additive noise of this library"):
        check_noise(ExponentialMechanism(rate=1.0))
    with pytest.raises(InvalidParameter, match="draws=49 must be a whole number >= 50"):
        check_noise(GaussianMechanism(stddev=1.0), draws=49)
    with pytest.raises(InvalidParameter, match="one a column of the grid"):
        check_noise(EllipticalGaussianMechanism(stddevs=(1.0, 2.0)), grid=WHOLE)
    with pytest.raises(InvalidParameter, match="alpha=0.7"):
        check_noise(GaussianMechanism(stddev=1.0), alpha=0.7)
    with pytest.raises(InvalidParameter, match="drew no noise and made no choice"):
        check_fit_noise(lambda: None)
    with pytest.raises(InvalidParameter, match="fits=1 drew 3 numbers of noise and choices.*about 17 fits"):
        check_fit_noise(lambda: GaussianMechanism(stddev=1.0).randomise(np.zeros((3, 1), int), WHOLE, SeededRandom(1)))


@pytest.mark.parametrize("result", [np.zeros((3, 1)), np.zeros((2, 1), np.int64), None, [1, 2]])
def test_a_sampler_that_returns_something_else_is_refused(result, monkeypatch):
    monkeypatch.setattr(GaussianMechanism, "randomise", lambda self, *rest: result)
    with pytest.raises(InvalidParameter, match=r"randomise\(\) result"):
        check_noise(GaussianMechanism(stddev=1.0), draws=60)


def test_a_record_inside_of_a_record_is_refused_and_nothing_is_ever_wrapped():
    before = GaussianMechanism.randomise, ExponentialMechanism.select
    with pytest.raises(ReplayFailed, match="a record of noise cannot be opened inside of it"):
        check_fit_noise(lambda: check_fit_noise(lambda: None))
    with pytest.raises(ZeroDivisionError):
        check_fit_noise(lambda: 1 / 0)
    assert (GaussianMechanism.randomise, ExponentialMechanism.select) == before


@pytest.mark.parametrize("fault", ["tiled", "opposite", "third", "seven later"])
def test_noise_that_repeats_itself_at_any_distance_within_a_call_is_found(fault, monkeypatch):
    """Scale, shape, neighbours, columns and releases are all as they should be."""
    mechanism = GaussianMechanism(stddev=4.0)
    right = GaussianMechanism.randomise

    def randomise(self, statistic, grid, source):
        noise = right(self, statistic, grid, source) - statistic
        flat = noise.ravel()
        half, third = len(flat) // 2, len(flat) // 3
        if fault == "tiled":
            flat[half : 2 * half] = flat[:half]
        elif fault == "opposite":
            flat[half : 2 * half] = -flat[:half]
        elif fault == "third":
            flat[third : 2 * third] = flat[:third]
        else:
            blocks = flat[: len(flat) // 14 * 14].reshape(-1, 14)
            blocks[:, 7:] = blocks[:, :7]
        return statistic + flat.reshape(statistic.shape)

    monkeypatch.setattr(GaussianMechanism, "randomise", randomise)
    found = check_noise(mechanism, draws=4_001, alpha=1e-6)
    assert found.rejected
    assert dict(found.p_values)["repeats"] < 1e-20
