"""The discrete pairs behind events, enumerated in mpmath, and the worst shift of a bounded range.

Nothing here is shared with `ledgerwood.accounting`. docs/explanation/ledger.md#verification.
"""

from collections.abc import Callable
from typing import Any

from mpmath import MPContext

mp = MPContext()
"""A context of its own: nobody else's working precision reaches in here, and none is left behind."""
mpf = mp.mpf

Number = Any
"""An mpmath real; mpmath ships no types."""
Points = tuple[tuple[Number, Number], ...]

_MOST_INTEGERS = 1 << 18


def worst_shift(epsilon: Number, value: Callable[[Number, Number, Number, Number], Number]) -> Number:
    """The largest value(e^t, e^{t - epsilon}, Q of the latter, Q of the former) over 0 < t < epsilon.

    A scan, finer towards both ends, then golden sections around its best point: any t gives a lower bound, and the
    scan is there so that nothing rests on the function having one maximum.
    """

    def at(t: Number) -> Number:
        up, down = mp.exp(t), mp.exp(t - epsilon)
        light = (1 - down) / (up - down)
        return value(up, down, 1 - light, light)

    ends = [mpf(2) ** -k / 16 for k in range(24, 0, -1)]
    scan = [*ends, *(mpf(i) / 16 for i in range(1, 16)), *(1 - x for x in reversed(ends))]
    values = [at(epsilon * x) for x in scan]
    best = max(range(len(scan)), key=values.__getitem__)
    low = epsilon * (scan[best - 1] if best else 0)
    high = epsilon * (scan[best + 1] if best + 1 < len(scan) else 1)
    golden = (mp.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = at(left), at(right)
    for _ in range(48):  # the maximum is flat: 1e-10 of the bracket is 1e-20 of the value
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = at(right)
    return max(values[best], at_left, at_right)


def table_atoms(given: Points) -> list[tuple[Number, Number]]:
    """(epsilon, Q of that log ratio) of the pair with the greatest convex profile through no more than the points.

    The profile lies on the lines x -> delta_i + slope (x - e^eps_i); at each x the greatest convex function below the
    points is the least chord over pairs of points, (-1, 1) being one of them (a line through it mirrors itself).
    """
    least, points = mpf(1), [(mpf(-1), mpf(1))]
    for epsilon, delta in given:
        if delta < least:
            least = delta
            points.append((mp.exp(epsilon), delta))
    corners, index, slopes = [], 0, []
    while index < len(points) - 1:  # from each corner along the steepest way down
        x, y = points[index]
        found = [((points[j][1] - y) / (points[j][0] - x), j) for j in range(index + 1, len(points))]
        slope, index = min(found, key=lambda pair: (pair[0], -pair[1]))
        slopes.append(slope)
        corners.append(points[index][0])
    slopes.append(mpf(0))
    return [(mp.log(x), after - before) for x, before, after in zip(corners, slopes, slopes[1:], strict=False)]


def curve_divergence(rho: Number | None, given: Points, order: Number) -> Number:
    """The least Renyi divergence at `order` that a statement allows: rho times the order, or the chords of its points.

    (a - 1) D_a is convex, and 0 at 1.
    """
    if rho is not None:
        return rho * order
    points = [(mpf(1), mpf(0)), *((a, (a - 1) * divergence) for a, divergence in given)]
    chords = [
        y if a == order else y + (v - y) * (order - a) / (b - a)
        for i, (a, y) in enumerate(points)
        for b, v in points[i:]
        if a <= order <= b and (a < b or a == order)
    ]
    return min(chords, default=mp.inf) / (order - 1)


def laplace_integers(scale: Number, shift: int) -> list[tuple[Number, Number]]:
    """(log likelihood ratio, Q) of the discrete Laplace: what lies beyond 0 and beyond the shift is one atom each."""
    decay = mp.exp(-1 / scale)
    inner = [((2 * z - shift) / scale, (1 - decay) / (1 + decay) * decay**z) for z in range(1, shift)]
    return [(-shift / scale, 1 / (1 + decay)), *inner, (shift / scale, decay**shift / (1 + decay))]


def normal_integers(scale: Number, shift: int, power: Number) -> list[tuple[Number, Number]]:
    """(log likelihood ratio, Q) of each integer that matters to a moment of `power` of the discrete Gaussian.

    Mass beyond e^{-800} is left out.
    """
    reach = int(mp.ceil(40 * scale)) + 1
    total = mp.jtheta(3, 0, mp.exp(-1 / (2 * scale**2)))
    left, right = -reach - int(power) * shift, reach + (int(power) + 1) * shift
    if right - left > _MOST_INTEGERS:
        raise ValueError(f"a discrete Gaussian over {right - left} integers is too wide to be enumerated")
    return [
        (shift * (z - mpf(shift) / 2) / scale**2, mp.exp(-(mpf(z) ** 2) / (2 * scale**2)) / total)
        for z in range(left, right + 1)
    ]


def integer_gaussian_excess(scale: Number, shift: int, power: Number) -> Number:
    """E_Q[r^p] - 1 of a discrete Gaussian: that of the normal law, times theta(p shift) / theta(0)."""
    centre = power * shift - mp.nint(power * shift)
    reach = int(mp.ceil(20 * scale)) + 2

    def theta(offset: Number) -> Number:
        return mp.fsum(mp.exp(-((z - offset) ** 2) / (2 * scale**2)) for z in range(-reach, reach + 1))

    return mp.exp(power * (power - 1) * shift**2 / (2 * scale**2)) * theta(centre) / theta(mpf(0)) - 1
