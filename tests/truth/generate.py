"""Ground truth for Renyi divergences of Poisson-sampled pairs, in mpmath, by methods that the library does not use.

    python tests/truth/generate.py      # writes renyi_gaussian.csv and renyi_laplace.csv beside it; several minutes

Gaussian: E_Q[s^p] by the trapezoidal rule at 90 digits, with an a-priori error bound in the strip |Im log r| < pi.
Laplace: the two atoms and a graded 60-node Gauss-Legendre rule at 90 digits. At integer orders both are checked against
exact binomial sums. The direct integrand s^p is used (the library uses two positive parts of the excess), and the 1 is
subtracted at 90 digits. Every parameter is the double that the library receives. Values are given with 25 digits.
"""

import csv
import sys
from pathlib import Path

import mpmath as mp

DIGITS = 90
TARGET = 180  # discretisation and truncation errors below e^{-180} = 1e-78
SAMPLING_RATES = (1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 1.0)
MULTIPLIERS = (0.3, 0.6, 1.0, 2.0, 5.0, 20.0, 100.0)
ORDERS = (1.01, 1.25, 1.5, 2.0, 2.5, 4.0, 8.0, 16.0, 32.5, 64.0, 256.0, 1024.0, 8192.0)
HERE = Path(__file__).parent


def divergence(family, rate, multiplier, order, direction):
    """D_a in nats as an mpf; direction "remove" (P' against Q) or "add" (Q against P')."""
    with mp.workdps(DIGITS):
        q, b, a = mp.mpf(rate), mp.mpf(multiplier), mp.mpf(order)
        power = a if direction == "remove" else 1 - a
        if rate == 1.0:
            return CLOSED[family](b, a)
        moment = MOMENTS[family](q, b, power)
        if direction == "remove" and a == int(a):
            exact = binomial(family, q, b, int(a))
            assert abs(mp.log(moment) / mp.log(exact) - 1) < mp.mpf(10) ** -35, (family, rate, multiplier, order)
        return mp.log(moment) / (a - 1)


def closed_gaussian(s, a):
    return a / (2 * s * s)


def closed_laplace(b, a):
    c = 2 * a - 1
    return mp.log(a / c * mp.exp((a - 1) / b) + (a - 1) / c * mp.exp(-a / b)) / (a - 1)


def gaussian_moment(q, s, p):
    """E_Q[s^p], Q = N(0, 1), r = exp(z / s - 1 / (2 s^2)): trapezoidal rule, windows that hold all but e^{-TARGET}."""
    mu = 1 / s
    best = mp.mpf(0)
    for k in range(1, 60):
        d = min(mp.mpf(19), mp.mpf("3.1") / mu) * k / 60
        loss = 0 if p > 0 else p * mp.log(mp.cos(mu * d / 2))
        best = max(best, 2 * mp.pi * d / (TARGET + 2 + loss + d * d / 2))
    h = best
    width = mp.sqrt(2 * TARGET)
    odds = mp.log(q / (1 - q))

    def posterior(z):
        return 1 / (1 + mp.exp(-(odds + mu * z - mu * mu / 2)))

    if p < 0:
        low, high = p * mu, mp.mpf(0)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if middle < p * mu * posterior(middle) else (low, middle)
        windows = [(low - width, width)]
    else:
        top = p * mu
        bulk = mu / 2 - odds / mu + (mp.log(4 * p * mu * mu + 4) + 5) / mu  # beyond: curvature above 1 - 1e-2
        bulk = max(bulk, mp.mpf(0)) + 2 * width
        windows = (
            [(-width, top + width)] if top - 2 * width < bulk else [(-width, bulk), (top - 2 * width, top + width)]
        )
    total = mp.mpf(0)
    log_not = mp.log(1 - q)
    for low, high in windows:
        for k in range(int(mp.floor(low / h)), int(mp.ceil(high / h)) + 1):
            z = k * h
            ratio = mp.exp(odds + mu * z - mu * mu / 2)
            log_s = log_not + mp.log(1 + ratio)
            total += mp.exp(p * log_s - z * z / 2)
    return total * h / mp.sqrt(2 * mp.pi)


_NODES = {}


def nodes(count):
    """Gauss-Legendre nodes and weights on [0, 1] at DIGITS digits, by Newton's method."""
    if count not in _NODES:
        rule = []
        for i in range(1, count + 1):
            x = mp.cos(mp.pi * (i - mp.mpf("0.25")) / (count + mp.mpf("0.5")))
            for _ in range(12):
                p0, p1 = mp.mpf(1), x
                for n in range(2, count + 1):
                    p0, p1 = p1, ((2 * n - 1) * x * p1 - (n - 1) * p0) / n
                slope = count * (x * p1 - p0) / (x * x - 1)
                x -= p1 / slope
            rule.append(((1 + x) / 2, 1 / ((1 - x * x) * slope * slope)))
        _NODES[count] = rule
    return _NODES[count]


def laplace_moment(q, b, p):
    """E_Q[s^p] over l = log r: atoms 1/2 at -1/b and e^{-1/b}/2 at 1/b, density e^{-(l + 1/b)/2} / 4 between."""
    shift = 1 / b

    def log_s(value):
        return mp.log(1 - q + q * mp.exp(value))

    total = (mp.exp(p * log_s(-shift)) + mp.exp(p * log_s(shift) - shift)) / 2
    peak = max(p * log_s(-shift), p * log_s(shift) - shift, mp.mpf(0))
    stack = [(-shift, shift)]
    while stack:
        low, high = stack.pop()
        edge = max(p * log_s(low) - (low + shift) / 2, p * log_s(high) - (low + shift) / 2)
        if edge < peak - TARGET:  # s^p is monotone: nothing of weight is in here
            continue
        if high - low > mp.mpf("0.4") or abs(p * (log_s(high) - log_s(low))) > 8:
            middle = (low + high) / 2
            stack += [(low, middle), (middle, high)]
            continue
        width = high - low
        total += (
            width
            / 4
            * mp.fsum(w * mp.exp(p * log_s(low + width * x) - (low + width * x + shift) / 2) for x, w in nodes(60))
        )
    return total


def binomial(family, q, b, a):
    """E_Q[s^a] = sum_i C(a, i) (1-q)^{a-i} q^i E_Q[r^i], exactly, for a whole number a."""
    total, weight = mp.mpf(0), (1 - q) ** a
    for i in range(a + 1):
        if family == "gaussian":
            moment = mp.exp((i * i - i) / (2 * b * b))
        else:
            moment = mp.mpf(1) if i < 2 else mp.exp((i - 1) * closed_laplace(b, mp.mpf(i)))
        total += weight * moment
        weight = weight * (a - i) * q / ((i + 1) * (1 - q))
    return total


MOMENTS = {"gaussian": gaussian_moment, "laplace": laplace_moment}
CLOSED = {"gaussian": closed_gaussian, "laplace": closed_laplace}


def rows(family):
    for rate in SAMPLING_RATES:
        for multiplier in MULTIPLIERS:
            for order in ORDERS:
                values = [divergence(family, rate, multiplier, order, d) for d in ("remove", "add")]
                yield [family, rate, multiplier, order, *(mp.nstr(v, 25) for v in values)]


def main(families):
    for family in families:
        path = HERE / f"renyi_{family}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["family", "sampling_rate", "noise_multiplier", "order", "remove", "add"])
            for row in rows(family):
                writer.writerow(row)
                file.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or tuple(MOMENTS)))
