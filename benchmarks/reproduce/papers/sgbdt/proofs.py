"""S-GBDT's definitions, theorems and algorithms in numbers: exact losses against printed bounds, over wide grids.

Each check returns the largest share of a printed bound that an exact value reached ("largest"), and over how many
cases. A share above 1 refutes the statement. Random cases have seed 0.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

import ledgerwood as lw
from benchmarks.utility import Scale
from ledgerwood.accounting.individuals import IndividualRenyi
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification import errata

Array = NDArray[np.float64]
Check = dict[str, Any]
A = lw.Adjacency.ADD_REMOVE
ORDERS = (2, 3, 4, 8, 16, 32, 64, 128)
RATES = (1e-3, 1e-2, 0.1, 0.3, 0.9)
MULTIPLIERS = (0.5, 1.0, 2.0, 5.0, 20.0, 100.0)
SHARES = (0.05, 0.2, 0.5, 0.9)
RANDOM_PAIRS = 200


def worst(shares: Iterator[float] | list[float], **others: float) -> Check:
    """The largest share of a bound."""
    found = [float(share) for share in shares]
    return {"largest": max(found), "cases": len(found), **others}


def gaussian(multiplier: float) -> lw.Event:
    """A Gaussian pair."""
    return lw.GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def at(event: lw.Event, order: float) -> float:
    """The exact Renyi divergence, the larger direction, in nats."""
    return float(event.renyi(np.array([float(order)]))[0])


def divergence(p: Array, q: Array, order: float) -> float:
    """The Renyi divergence of two discrete distributions, the larger direction, in nats."""
    found = []
    for one, other in ((p, q), (q, p)):
        ratio = np.log(one) - np.log(other)
        if float(np.abs(order * ratio).max()) < 600.0:
            found.append(math.log1p(float(other @ np.expm1(order * ratio))))  # exact where both are close
        else:
            found.append(float(logsumexp(order * ratio, b=other)))
    return max(found) / (order - 1.0)


def pairs(generator: np.random.Generator, outcomes: int = 4) -> tuple[Array, Array]:
    """A random pair of distributions; close ones are as frequent as far ones."""
    p, far = generator.dirichlet(np.full(outcomes, 0.5), 2) + 1e-12
    mixed = 0.02 + 0.98 * generator.random() ** 3
    q = (1.0 - mixed) * p + mixed * far
    return p / p.sum(), q / q.sum()


# -------------------------------------------------------------------------------------------------------- definitions


def neighbours(_: Scale) -> Check:
    """Definition 1: (rows, clipped gradients) of every data set of two values, and of one more, by our sensitivity."""
    clip, values = 0.25, np.linspace(-1.0, 1.0, 21)
    plan = SGBDTRegressor(
        epsilon=1.0, delta=1e-6, schema=lw.Schema.uniform(0, 1, n_features=1, target=lw.Numeric("y", -1, 1))
    )
    own = plan.make_plan(plan.schema)
    per_unit = own.leaf_stddevs
    shares = []
    for first, second, more in itertools.product(values, repeat=3):
        sums = [
            np.array([len(rows), np.clip(rows, -clip, clip).sum()]) for rows in ((first, second), (first, second, more))
        ]
        shares.append(float(np.linalg.norm((sums[1] - sums[0]) / per_unit)) / own.tree_event.mu())
    return worst(shares)


def single_outputs(_: Scale) -> Check:
    """Definition 2 as printed, Pr[M(X) = o]: a row published with one of 1 / delta tags satisfies it at epsilon 0."""
    delta = 1e-5
    tags = round(1.0 / delta)
    p, q = np.zeros(2 * tags), np.zeros(2 * tags)
    p[:tags], q[tags:] = delta, delta
    single, sets = float((p - q).max()), float(np.maximum(p - q, 0.0).sum())
    return {"claimed": delta, "single": single, "exact": sets}


def renyi_by_quadrature(_: Scale) -> Check:
    """Definitions 3 and 4: Renyi divergences of a sampled Gaussian, both directions, against the integral itself."""
    shares = []
    for multiplier in (0.7, 1.0, 3.0):
        for rate in (0.01, 0.1, 0.5, 1.0):
            event = gaussian(multiplier) if rate == 1.0 else lw.PoissonSampled(gaussian(multiplier), sampling_rate=rate)
            for order in (2.0, 4.0, 9.0):
                exact = max(_sampled_quadrature(multiplier, rate, order, reverse=reverse) for reverse in (False, True))
                shares.append(exact / at(event, order))
    return {**worst(shares), "smallest": min(shares)}


def _sampled_quadrature(multiplier: float, rate: float, order: float, *, reverse: bool) -> float:
    """The divergence of one direction, by the trapezoidal rule, which is exact to rounding for such smooth tails."""
    sharp = 1.0 / multiplier
    x = np.linspace(-40.0, 40.0 + order * sharp, 60_001)
    log_q = -0.5 * x * x - 0.5 * math.log(2.0 * math.pi)
    moved = math.log(rate) + sharp * x - 0.5 * sharp**2
    log_p = log_q + (np.logaddexp(math.log1p(-rate), moved) if rate < 1.0 else moved)
    first, second = (log_q, log_p) if reverse else (log_p, log_q)
    exponents = order * first - (order - 1.0) * second
    if float(exponents.max()) > 600.0:
        return float(logsumexp(exponents) + math.log(x[1] - x[0])) / (order - 1.0)
    grown = order * (first - second)
    small = np.exp(second) * np.expm1(np.minimum(grown, 1.0))
    excess = np.where(grown < 1.0, small, np.exp(exponents) - np.exp(second))  # the integral of `second` is 1
    return math.log1p(float(excess.sum()) * (x[1] - x[0])) / (order - 1.0)


def individual(_: Scale) -> Check:
    """Definition 6 and Lemma 13: a row's divergence by its gradient, at most the one of the largest contribution."""
    shares = []
    for multiplier in MULTIPLIERS:
        for event in (gaussian(multiplier), lw.PoissonSampled(gaussian(multiplier), sampling_rate=0.1)):
            rows = IndividualRenyi(event, np.array(ORDERS[:5], dtype=float)).at(np.linspace(0.01, 1.0, 40))
            shares.extend((rows / event.renyi(np.array(ORDERS[:5], dtype=float))).ravel().tolist())
    slack = 1e-7  # the table of rows is rounded up by at most that
    return worst([share / (1.0 + slack) for share in shares])


# ---------------------------------------------------------------------------------------- composition, and the filter


def exponential(_: Scale) -> Check:
    """Theorem 5: random utilities, neighbours' within the sensitivity; and the worst case of two equal halves."""
    generator, epsilon, shares = np.random.default_rng(0), 1.0, []
    for _trial in range(RANDOM_PAIRS):
        utility = generator.normal(0.0, 5.0, 20)
        other = utility + generator.choice([-1.0, 1.0], 20)
        p, q = (u / 2.0 * epsilon - logsumexp(u / 2.0 * epsilon) for u in (utility, other))
        shares.append(float(np.abs(p - q).max()) / epsilon)
    rare = np.append(0.0, np.full(10**6, 0.0))
    moved = np.append(1.0, np.full(10**6, -1.0))
    p, q = (u / 2.0 * epsilon - logsumexp(u / 2.0 * epsilon) for u in (rare, moved))
    return worst([*shares, float(np.abs(p - q).max()) / epsilon])


def post_processing(_: Scale) -> Check:
    """Theorem 12: random pairs through random channels."""
    generator, shares = np.random.default_rng(0), []
    for _trial in range(RANDOM_PAIRS):
        p, q = pairs(generator)
        channel = generator.dirichlet(np.full(3, 0.5), 4)
        shares += [divergence(p @ channel, q @ channel, order) / divergence(p, q, order) for order in (2, 8, 32)]
    return worst(shares)


def adaptive(_: Scale) -> Check:
    """Theorem 16, Corollary 17: a second mechanism that depends on the first one's output; enumerated."""
    generator, shares = np.random.default_rng(0), []
    for _trial in range(RANDOM_PAIRS):
        p, q = pairs(generator)
        second = [pairs(generator) for _ in p]
        joint = [
            np.concatenate([a * pair[k] for a, pair in zip(one, second, strict=True)]) for k, one in enumerate((p, q))
        ]
        for order in (2, 8, 32):
            bound = divergence(p, q, order) + max(divergence(*pair, order) for pair in second)
            shares.append(divergence(joint[0], joint[1], order) / bound)
    return worst(shares)


ROUNDS = 8


def filtered(_: Scale) -> Check:
    """Theorems 7 and 8, Algorithm 1: one row, 8 rounds whose losses the adversary chooses by the outputs so far.

    Each round is a randomised response; the row takes part while its sum of exact divergences, the round included, is
    within the limit. Enumerated over all outputs; with and without line 6, which undoes the charge of a refused round.
    """
    generator, shares, without = np.random.default_rng(0), [], []
    for trial in range(100):
        order, limit = float((2, 8, 32)[trial % 3]), 0.05 * 4.0 ** generator.integers(0, 3)
        for undone in (True, False):
            log_p, log_q, plain_p, plain_q, sums = (np.zeros(1) for _ in range(5))
            for _round in range(ROUNDS):
                epsilon = generator.uniform(0.0, 0.8, len(log_p))  # one choice a history
                high, low = -np.log1p(np.exp(-epsilon)), -np.log1p(np.exp(epsilon))
                a, b = order * high - (order - 1) * low, order * low - (order - 1) * high
                loss = np.logaddexp(a, b) / (order - 1.0)
                active = sums + loss <= limit
                sums = sums + np.where(active | (not undone), loss, 0.0)
                fair = math.log(0.5)
                p1, p0 = np.where(active, high, fair), np.where(active, low, fair)
                log_p, log_q = np.concatenate((log_p + p1, log_p + p0)), np.concatenate((log_q + p0, log_q + p1))
                plain_p = np.concatenate((plain_p + high, plain_p + low))
                plain_q = np.concatenate((plain_q + low, plain_q + high))
                sums = np.concatenate((sums, sums))
            shares.append(divergence(np.exp(log_p), np.exp(log_q), order) / limit)
            without.append(divergence(np.exp(plain_p), np.exp(plain_q), order) / limit)
    return worst(shares, without=max(without))


# ------------------------------------------------------------------------------------------------- leaves and sampling


def printed_sampling(order: int, rate: float, inner: Callable[[int], float]) -> float:
    """Theorem 14's right side at a whole order, for the divergences `inner` of what is sampled."""
    # Without factors and divergences the terms are binomial weights, which sum to 1: what is left is the excess.
    powers = np.arange(2, order + 1)
    weights = gammaln(order + 1) - gammaln(powers + 1) - gammaln(order - powers + 1)
    weights = weights + (order - powers) * math.log1p(-rate) + powers * math.log(rate)
    grown = (powers - 1) * np.array([inner(int(power)) for power in powers])
    if float(grown.max()) < 600.0:
        tripled = np.where(powers > 2, 2.0 * np.exp(grown), 0.0)
        return math.log1p(float(np.exp(weights) @ (np.expm1(grown) + tripled))) / (order - 1)
    terms = weights + grown + np.where(powers > 2, math.log(3.0), 0.0)
    return float(logsumexp(np.append(terms, 0.0))) / (order - 1)


def sampling(_: Scale) -> Check:
    """Theorems 9 and 14, both directions: Gaussian and Laplace noise, and random discrete mechanisms; whole orders."""
    events: list[lw.Event] = [gaussian(multiplier) for multiplier in MULTIPLIERS]
    events += [lw.LaplaceEvent(noise_multiplier=scale_, adjacency=A) for scale_ in (0.5, 1.0, 4.0)]
    shares = []
    for event in events:
        curve = event.renyi(np.arange(2.0, max(ORDERS) + 1.0))
        for rate in RATES:
            for order in ORDERS:
                exact = at(lw.PoissonSampled(event, sampling_rate=rate), order)
                shares.append(exact / printed_sampling(order, rate, lambda power, curve=curve: float(curve[power - 2])))
    generator = np.random.default_rng(0)
    for _trial in range(RANDOM_PAIRS):
        p, q = pairs(generator)
        rate, order = float(generator.choice(RATES)), int(generator.choice(ORDERS[:5]))
        mixed = rate * p + (1.0 - rate) * q
        bound = printed_sampling(order, rate, lambda power, p=p, q=q: divergence(p, q, power))
        shares.append(divergence(mixed, q, order) / bound)
    return worst(shares)


def leaves(_: Scale) -> Check:
    """Theorem 10, Corollaries 21 and 22: exact divergence of (count, sum) with unequal noise, over the printed one.

    Exact by quadrature of each coordinate; gradients up to three times the clip, which the mechanism clips.
    """
    below, above = [], []
    for sigma in (0.5, 2.0, 10.0):
        for share in SHARES:
            for clip in (0.1, 1.0):
                for gradient in (0.0, 0.3 * clip, clip, 3.0 * clip):
                    stddevs = (sigma / math.sqrt(2.0 * share), sigma / math.sqrt(2.0 * (1.0 - share)))
                    shifts = (1.0, min(gradient, clip))
                    for order in (2.0, 8.0, 32.0):
                        exact = sum(
                            _sampled_quadrature(std / shift, 1.0, order, reverse=False)
                            for std, shift in zip(stddevs, shifts, strict=True)
                            if shift
                        )
                        printed = order * (share + (1.0 - share) * gradient**2) / sigma**2
                        (below if gradient <= clip else above).append(exact / printed)
    return {**worst(below), "smallest": min(below), "clipped": max(above)}


def trees(_: Scale) -> Check:
    """Theorem 23, Corollary 24, Remark 15: a sampled tree, exact over printed, for rows below the clip, too."""
    shares = []
    for sigma in (1.0, 4.0, 16.0):
        for share in SHARES:
            for gradient in (0.0, 0.5, 1.0):
                mu = math.sqrt(2.0 * (share + (1.0 - share) * gradient**2)) / sigma
                for rate in RATES:
                    exact = lw.PoissonSampled(gaussian(1.0 / mu), sampling_rate=rate)
                    for order in ORDERS:
                        # The divergence at the requested order only, as printed.
                        same = 0.5 * order * mu**2
                        printed = printed_sampling(order, rate, lambda power, same=same: same + 0.0 * power)
                        shares.append(at(exact, order) / printed)
    return worst(shares)


def amplification(_: Scale) -> Check:
    """Section VI-C: gamma delta at log(1 + gamma (e^epsilon - 1)) for a sampled Gaussian, of the exact profile."""
    shares = []
    for multiplier in (0.7, 1.0, 3.0):
        whole = lw.price(gaussian(multiplier))
        for rate in (0.01, 0.1, 0.5):
            part = lw.price(lw.PoissonSampled(gaussian(multiplier), sampling_rate=rate))
            shares += [
                part.delta(math.log1p(rate * math.expm1(epsilon))) / (rate * whole.delta(epsilon))
                for epsilon in (0.1, 0.5, 1.0)
            ]
    # The profile of a sampled event is rounded up.
    return worst([share / (1.0 + 1e-6) for share in shares])


def noise_by_rows(_: Scale) -> Check:
    """Section VI-B: n times the spread of a leaf's released value, by quadrature over the count's noise.

    With the paper's constants: sigma 17, r1 .2, clip .1, lambda 15; a leaf's mean gradient is half of the clip.
    """
    sigma, share, clip, floor = 17.0, 0.2, 0.1, 15.0
    count_std, sum_std = sigma / math.sqrt(2 * share), clip * sigma / math.sqrt(2 * (1 - share))
    z, weights = np.polynomial.hermite_e.hermegauss(101)
    weights = weights / weights.sum()
    spreads: dict[str, float] = {}
    for rows in (100, 300, 1_000, 3_000, 10_000, 100_000):
        total = 0.5 * clip * rows
        divisor = np.maximum(floor, rows + count_std * z)
        first = float(weights @ (total / divisor))
        second = float(weights @ ((total**2 + sum_std**2) / divisor**2))
        spreads[str(rows)] = rows * math.sqrt(second - first**2)
    return {"spreads": spreads}


def average_sign(_: Scale) -> Check:
    """Algorithm 4's last line with and without its minus: squared error of 20 one-leaf trees, no noise."""
    labels = np.linspace(-0.9, 0.5, 1_000)
    errors = {}
    for name, sign in (("as printed", 1.0), ("with the minus", -1.0)):
        score = np.zeros_like(labels)
        for _ in range(20):
            gradient = np.clip(score - labels, -0.5, 0.5)
            score = score + 0.1 * sign * gradient.sum() / max(15.0, len(labels))
        errors[name] = float(np.mean((score - labels) ** 2))
    return {"start": float(np.mean(labels**2)), **errors}


def specimens(_: Scale) -> Check:
    """What the errata's specimens of this paper lose exactly, beside what is claimed, at an epsilon that shows it."""
    return {
        found.name: {
            "epsilon": found.witness,
            "claimed": found.claimed_delta(found.witness),
            "exact": found.delta(found.witness),
        }
        for found in errata.SGBDT
    }
