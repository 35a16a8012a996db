"""Independent losses: mpmath quadrature between kinks, and the closed forms of Gaussian pairs."""

import itertools

import mpmath as mp
import pytest


@pytest.fixture
def hockey_stick():
    """H(epsilon) = integral (p - e^eps q)_+ over panels in each of which the ratio is monotone."""

    def integrate(log_p, log_q, epsilon, edges):
        def gap(x):
            return log_p(x) - log_q(x) - epsilon

        total = mp.mpf(0)
        for low, high in itertools.pairwise(mp.mpf(edge) for edge in edges):
            at_low, at_high = gap(low) > 0, gap(high) > 0
            if not at_low and not at_high:
                continue
            if at_low != at_high:
                inner, outer = (low, high) if at_low else (high, low)
                for _ in range(80):
                    middle = (inner + outer) / 2
                    inner, outer = (middle, outer) if gap(middle) > 0 else (inner, middle)
                low, high = (low, inner) if at_low else (inner, high)
            total += mp.quad(lambda x: mp.exp(log_p(x)) - mp.exp(epsilon + log_q(x)), mp.linspace(low, high, 9))
        return float(total)

    return integrate


@pytest.fixture
def gaussian_delta():
    """The profile of N(mu, 1) against N(0, 1)."""

    def delta(mu, epsilon):
        mu = mp.mpf(mu)
        return float(mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu))

    return delta


@pytest.fixture
def sampled_gaussian_delta():
    """The larger profile of (1 - q) N(0, 1) + q N(mu, 1) against N(0, 1), by the point where the ratio is e^eps."""

    def delta(mu, rate, epsilon):
        mu, rate, factor = mp.mpf(mu), mp.mpf(rate), mp.exp(epsilon)

        def mixture(z):  # mass above z
            return (1 - rate) * mp.ncdf(-z) + rate * mp.ncdf(mu - z)

        z = mp.log((factor - 1) / rate + 1) / mu + mu / 2
        remove = mixture(z) - factor * mp.ncdf(-z)
        inner = (1 / factor - 1) / rate + 1
        if inner <= 0:
            return float(remove)
        z = mp.log(inner) / mu + mu / 2
        return float(max(remove, mp.ncdf(z) - factor * (1 - mixture(z))))

    return delta


@pytest.fixture
def public_part():
    """Everything of a fitted model but the released leaf values, from a declared schema and one seed."""

    def fitted(estimator, X, y):
        model = estimator.fit(X, y)
        arrays = model.ensemble_.to_arrays()
        released = {name for name, values in arrays.items() if values.dtype.kind == "f"}
        shown = {name: values.tolist() for name, values in arrays.items() if name not in released}
        return shown, sorted(released), model.schema_, model.plan_

    return fitted


@pytest.fixture
def enumerated():
    """(larger hockey-stick divergence, largest |log ratio|) of two finite laws, given by exponents; in mpmath."""

    def loss(exponents, others, epsilon):
        laws = []
        for given in (exponents, others):
            weights = [mp.exp(mp.mpf(x)) for x in given]
            laws.append([w / mp.fsum(weights) for w in weights])
        sides = (
            mp.fsum(max(a - mp.exp(epsilon) * b, 0) for a, b in zip(p, q, strict=True)) for p, q in (laws, laws[::-1])
        )
        ratios = (abs(mp.log(a / b)) for a, b in zip(*laws, strict=True))
        return float(max(sides)), float(max(ratios))

    return loss


@pytest.fixture
def laplace_delta(hockey_stick):
    """The larger hockey-stick divergence of two Laplace laws (centre, scale) by quadrature."""

    def delta(first, second, epsilon):
        def log_density(law):
            centre, scale = (mp.mpf(number) for number in law)
            return lambda x: -abs(x - centre) / scale - mp.log(2 * scale)

        far = 60 * max(first[1], second[1])
        edges = sorted({first[0], second[0], min(first[0], second[0]) - far, max(first[0], second[0]) + far})
        laws = log_density(first), log_density(second)
        return max(hockey_stick(*laws, epsilon, edges), hockey_stick(*laws[::-1], epsilon, edges))

    return delta
