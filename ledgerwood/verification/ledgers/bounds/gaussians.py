"""The profile of a Gaussian pair whatever its size, and the epsilon at a delta: mu-GDP in mpmath.

At epsilon = mu x + mu^2 / 2 the profile is P(N > x) - e^epsilon P(N > x + mu), N normal. No power of e^epsilon is
taken, so that mu of 1e100 and a budget of epsilon 1e300 are numbers like others.
"""

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf

_LOWEST, _HIGHEST = -20, 40
_MOST_DIGITS = 500


def gaussian_delta(mu: Number, x: Number) -> Number:
    """The profile of mu-GDP at epsilon = mu x + mu^2 / 2 >= 0.

    e^epsilon phi(x + mu) = phi(x), so the second term is phi(x) times the Mills ratio at x + mu > 0, which is at most
    sqrt(pi / 2): below -20 what is missing from 1 is less than 1e-86. Above 40 the first term is below 1e-349.
    """
    if x < _LOWEST:
        return mpf(1)
    if x > _HIGHEST:
        return mpf(0)
    with mp.workdps(_digits(mu)):
        return mp.erfc(x / mp.sqrt(2)) / 2 - mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi) * _mills(x + mu)


def gaussian_epsilon(square: Number, delta: Number) -> Number:
    """The epsilon at delta of a pair with this mu^2, from above by less than 1e-18, relative; by bisection in x."""
    with mp.workdps(_digits(mp.sqrt(square))):
        mu = mp.sqrt(square)
        half = mu / 2
        if gaussian_delta(mu, -half) <= delta:
            return mpf(0)
        low, high = max(-half, mpf(_LOWEST)), mpf(_HIGHEST)
        while high - low > mpf(10) ** -18 * (high + half):
            middle = (low + high) / 2
            low, high = (low, middle) if gaussian_delta(mu, middle) <= delta else (middle, high)
        return mu * (high + half)


def _mills(y: Number) -> Number:
    """P(N > y) / phi(y) at y >= 0; beyond 1e6 by its series, of which eight terms hold 90 digits."""
    if y <= 10**6:
        return mp.sqrt(mp.pi / 2) * mp.exp(y * y / 2) * mp.erfc(y / mp.sqrt(2))
    term, total = 1 / y, mpf(0)
    for k in range(8):
        total, term = total + term, -term * (2 * k + 1) / y**2
    return total


def _digits(mu: Number) -> int:
    """For small mu the two terms agree in as many digits as mu has zeros."""
    zeros = int(-mp.log10(mu)) if mu < 1 else 0
    return int(min(60 + zeros, _MOST_DIGITS))
