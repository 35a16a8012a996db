"""The (epsilon, delta) curve of a long composition by inverting the moments of its losses: a cost independent of T.

delta(epsilon) = 1 / (2 pi i) int e^{K(s) - s epsilon} / (s (s + 1)) ds along the line whose real part c is the saddle
point, K the sum over the draws of log E e^{s L}; each direction apart. The trapezoidal rule on that line errs by
aliases that are all positive and bounded. The integrals behind K and the end of the line are checked by measurement,
not proven, so the result is an estimate; where the measurement fails, nothing is answered. docs/explanation/mgf.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.moment_laws import Law, Leaf, leaves, log_one_plus, nodes
from ledgerwood.errors import UnsupportedEvent

ComplexArray = NDArray[np.complex128]

TOLERANCE = 1e-8
"""Largest relative error of delta, as measured, with which an answer is given."""

_MOST_KINDS = 64
_MOST_TERMS = 1 << 22  # points of the line times nodes of the laws
_BLOCK = 32
_NEGLIGIBLE = 1e-13  # of the integral
_FAR = 36.0  # nats: aliases and first guesses of the line's end at e^{-36} = 2e-16
_TILTS = (1e-4, 1e4)
_HALVINGS = 26
_UNIT = 2.0**-52


@dataclass(frozen=True, slots=True)
class Plan:
    """What can be inverted: all Gaussian draws as one of mu^2, the others by kind, each with its count."""

    event: Event
    mu_squared: float
    kinds: tuple[tuple[tuple[Leaf, ...], int], ...]


def plan(event: Event) -> Plan:
    """Sort the draws of `event`.

    Raises:
        UnsupportedEvent: a draw without moments of complex order here, no draw whose losses have a density, or more
            than 64 kinds of draws.
    """
    counts: dict[Event, int] = {}
    square = 0.0
    for draw, count in event.draws():
        try:
            square += count * draw.mu() ** 2
        except UnsupportedEvent:
            counts[draw] = counts.get(draw, 0) + count
        if len(counts) > _MOST_KINDS:
            raise UnsupportedEvent(
                f"method 'mgf' takes at most {_MOST_KINDS} kinds of draws; use method 'pld' or 'renyi'"
            )
    kinds = tuple((leaves(draw), count) for draw, count in counts.items())
    if square == 0.0 and all(leaf.atomic for found, _ in kinds for leaf in found):
        raise UnsupportedEvent(
            "method 'mgf' needs a draw whose losses have a density (Gaussian or Laplace noise): the moments of lattice "
            "losses do not fall along the line of integration; use method 'pld'"
        )
    return Plan(event, square, kinds)


def epsilon(found: Plan, log_delta: float) -> float:
    """The epsilon (nats, >= 0) at which the larger direction of the estimated delta falls to e^{log_delta} < 1.

    Raises:
        UnsupportedEvent: the inversion is not accurate here.
    """
    return max(_epsilon(found, log_delta, direction) for direction in _directions(found))


def log_delta(found: Plan, epsilon: float) -> float:
    """Log of the larger direction of the estimated delta at `epsilon` >= 0 (nats), raised by its measured error.

    Raises:
        UnsupportedEvent: the inversion is not accurate here.
    """
    values = []
    for direction in _directions(found):

        def excess(tilt: float, direction: Direction = direction) -> float:
            _, mean, _ = _moments(_laws(found, direction, tilt, 0.0), tilt, found.mu_squared)
            return mean - 1.0 / tilt - 1.0 / (1.0 + tilt) - epsilon

        tilt = _tilt(excess)
        line = _pair(found, direction, tilt, epsilon)
        values.append(line.log_delta(epsilon) + line.error(epsilon))
    return min(max(values), 0.0)


def _directions(found: Plan) -> tuple[Direction, ...]:
    both = (Direction.REMOVE, Direction.ADD)
    return both[:1] if found.event.symmetric() else both


def _epsilon(found: Plan, target: float, direction: Direction) -> float:
    def excess(tilt: float) -> float:
        log_moment, mean, variance = _moments(_laws(found, direction, tilt, 0.0), tilt, found.mu_squared)
        return target - _by_saddle(tilt, log_moment, mean, variance)[1]

    tilt = _tilt(excess)
    log_moment, mean, variance = _moments(_laws(found, direction, tilt, 0.0), tilt, found.mu_squared)
    line = _pair(found, direction, tilt, _by_saddle(tilt, log_moment, mean, variance)[0])
    point = line.about
    for _ in range(50):
        step = (line.log_delta(point) + line.error(point) - target) / line.slope(point)
        point -= max(min(step, 0.25 * line.period), -0.25 * line.period)
        if abs(step) <= 1e-13 * (1.0 + abs(point)):
            break
    line.error(point)  # refuses where the last point is not as good as the first
    return max(point, 0.0)


def _tilt(excess: Callable[[float], float]) -> float:
    """Where a function that rises in log c crosses 0; overflow counts as above."""
    low, high = _TILTS
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        try:
            above = not excess(middle) <= 0.0
        except OverflowError:
            above = True
        low, high = (low, middle) if above else (middle, high)
    if low == _TILTS[0] or high == _TILTS[1]:
        raise UnsupportedEvent("method 'mgf' finds no saddle point here; use method 'pld' or 'renyi'")
    return low


def _by_saddle(tilt: float, log_moment: float, mean: float, variance: float) -> tuple[float, float]:
    """The epsilon whose saddle point `tilt` is, and a first guess of log delta there."""
    epsilon = mean - 1.0 / tilt - 1.0 / (1.0 + tilt)
    bend = variance + tilt**-2 + (1.0 + tilt) ** -2
    return epsilon, log_moment - tilt * epsilon - math.log(tilt * (1.0 + tilt)) - 0.5 * math.log(2.0 * math.pi * bend)


def _laws(found: Plan, direction: Direction, tilt: float, imaginary: float, *, fine: bool = False) -> list[Law]:
    return [nodes(kind, count, direction, tilt, imaginary, fine=fine) for kind, count in found.kinds]


def _moments(laws: list[Law], tilt: float, mu_squared: float) -> tuple[float, float, float]:
    """K, K' and K'' at the tilt."""
    log_moment = 0.5 * tilt * (tilt + 1.0) * mu_squared
    mean, variance = (tilt + 0.5) * mu_squared, mu_squared
    for law in laws:
        first = float(law.tilted @ law.loss)
        log_moment += law.count * law.log_moment
        mean += law.count * first
        variance += law.count * max(float(law.tilted @ (law.loss * law.loss)) - first * first, 0.0)
    return log_moment, mean, variance


def _pair(found: Plan, direction: Direction, tilt: float, about: float) -> "_Lines":
    """The line at two resolutions of all that is not proven."""
    laws = _laws(found, direction, tilt, 0.0)
    _, _, variance = _moments(laws, tilt, found.mu_squared)
    imaginary = math.sqrt(2.0 * _FAR / variance)
    period = _period(found, direction, tilt, about, variance)
    for _ in range(3):  # the end of the line decides how fine the integrals must be
        coarse = _line(found, direction, tilt, period, imaginary, fine=False)
        end = float(coarse.points[-1])
        if end <= imaginary:
            break
        imaginary = 1.25 * end
    return _Lines(coarse, _line(found, direction, tilt, period, imaginary, fine=True), about, period)


def _period(found: Plan, direction: Direction, tilt: float, about: float, variance: float) -> float:
    """The distance of aliases at which they are negligible, by Chernoff's bounds on both sides of `about`."""
    log_moment = _moments(_laws(found, direction, tilt, 0.0), tilt, found.mu_squared)[0]
    room = (
        _FAR
        + math.log(tilt * (1.0 + tilt))
        + 0.5 * math.log(2.0 * math.pi * (variance + tilt**-2 + (1.0 + tilt) ** -2))
    )
    above: list[float] = []
    below = [(room - min(log_moment - tilt * about, 0.0)) / tilt]
    for step in (k / math.sqrt(variance) for k in (0.5, 1.0, 2.0, 4.0, 7.0, 10.0)):
        try:
            grown = _moments(_laws(found, direction, tilt + step, 0.0), tilt + step, found.mu_squared)[0]
            above.append((grown - log_moment - step * about + room) / step)
        except OverflowError:
            pass
        if step < tilt:
            shrunk = _moments(_laws(found, direction, tilt - step, 0.0), tilt - step, found.mu_squared)[0]
            below.append((shrunk - log_moment + step * about + room) / step)
    if not above:
        raise UnsupportedEvent("method 'mgf' finds no bound on its aliases here; use method 'pld' or 'renyi'")
    return 1.05 * max(min(above), min(below))


@dataclass(frozen=True, slots=True)
class _Line:
    """The integrand on the line c + i u, u = 0, h, 2 h, ..., without its factor e^{K(c) - c epsilon}.

    Args:
        tilt: c.
        log_moment: K(c).
        points: u, shape (n,).
        values: e^{K(c + i u) - K(c)} / ((c + i u) (c + 1 + i u)), complex, shape (n,).
        tail: bound on what lies beyond the last point, as measured.
        rounding: units of 2^-52 of each value.
    """

    tilt: float
    log_moment: float
    points: FloatArray
    values: ComplexArray
    tail: float
    rounding: float

    def integral(self, epsilon: float) -> float:
        """delta e^{c epsilon - K(c)}."""
        turned = (self.values * np.exp(-1j * self.points * epsilon)).real
        return float(self.points[1]) / math.pi * float(turned.sum() - 0.5 * turned[0])

    def slope(self, epsilon: float) -> float:
        """The derivative of log delta."""
        turned = (self.values * (self.tilt + 1j * self.points) * np.exp(-1j * self.points * epsilon)).real
        total = float(turned.sum() - 0.5 * turned[0])
        return -float(self.points[1]) / math.pi * total / self.integral(epsilon)

    def doubt(self, epsilon: float) -> float:
        """Measured tail and rounding, of the same scale as `integral`."""
        size = float(self.points[1]) / math.pi * float(np.abs(self.values).sum())
        turn = abs(self.log_moment) + self.tilt * abs(epsilon) + float(self.points[-1]) * abs(epsilon)
        return self.tail + _UNIT * (self.rounding + turn) * size


@dataclass(frozen=True, slots=True)
class _Lines:
    coarse: _Line
    fine: _Line
    about: float
    period: float

    def log_delta(self, epsilon: float) -> float:
        line = self.fine
        return math.log(max(line.integral(epsilon), 1e-300)) + line.log_moment - line.tilt * epsilon

    def slope(self, epsilon: float) -> float:
        return self.fine.slope(epsilon)

    def error(self, epsilon: float) -> float:
        """The relative error of delta at `epsilon`, as measured.

        Raises:
            UnsupportedEvent: above `TOLERANCE`.
        """
        fine, coarse = self.fine.integral(epsilon), self.coarse.integral(epsilon)
        shift = self.coarse.log_moment - self.fine.log_moment
        found = math.inf
        if fine > 0.0 and coarse > 0.0:
            found = abs(math.log(coarse / fine) + shift) + self.fine.doubt(epsilon) / fine + 2.0 * math.exp(-_FAR)
        if not found <= TOLERANCE or abs(epsilon - self.about) > 0.2 * self.period:
            raise UnsupportedEvent(
                f"method 'mgf' would be wrong here: its two resolutions differ by {found:.1e} of delta, above "
                f"{TOLERANCE:.0e}, as where few draws hit the row or the plan is short; use method 'pld' or, for one "
                "draw, 'profile'"
            )
        return found


def _line(found: Plan, direction: Direction, tilt: float, period: float, imaginary: float, *, fine: bool) -> _Line:
    laws = _laws(found, direction, tilt, imaginary, fine=fine)
    log_moment, _, _ = _moments(laws, tilt, found.mu_squared)
    step = 2.0 * math.pi / period
    points, values, total = [], [], 0.0
    size = sum(law.loss.size for law in laws) + 1024
    for start in range(0, _MOST_TERMS // size, _BLOCK):
        u = np.asarray(step * np.arange(start, start + _BLOCK), dtype=np.float64)
        power = 0.5 * found.mu_squared * (1j * u * (2.0 * tilt + 1.0) - u * u)
        log_bound = -0.5 * found.mu_squared * u * u
        for law in laws:
            log_ratio, log_largest = _ratio(law, u)
            power = power + law.count * log_ratio
            log_bound = log_bound + law.count * log_largest
        poles = (tilt + 1j * u) * (tilt + 1.0 + 1j * u)
        block = np.exp(power) / poles
        points.append(u)
        values.append(block)
        total += float(np.abs(block).sum())
        largest = float(np.max(np.exp(log_bound) / np.abs(poles)))
        tail = largest * float(u[-1]) / math.pi
        if start and tail <= _NEGLIGIBLE * step * total / math.pi:
            scale = sum(law.count * float(law.tilted @ np.abs(law.loss)) for law in laws) * float(u[-1])
            return _Line(tilt, log_moment, np.concatenate(points), np.concatenate(values), tail, 8.0 * (scale + 8.0))
    raise UnsupportedEvent(
        "method 'mgf' would be wrong here: its integrand falls too slowly, as where few draws hit the row or losses "
        "have atoms; use method 'pld' or, for one draw, 'profile'"
    )


def _ratio(law: Law, u: FloatArray) -> tuple[ComplexArray, FloatArray]:
    """log E e^{(c + i u) L} - log E e^{c L}, and the log of a bound on its modulus that no atoms can exceed later."""
    angles = np.multiply.outer(u, law.loss)
    sine, halved = np.sin(angles), np.sin(0.5 * angles)
    fall = -2.0 * (halved * halved) @ law.tilted
    turn = sine @ law.tilted
    smooth = law.tilted[~law.atom]
    whole = float(smooth.sum())
    if law.atom.any():
        cosine = whole - 2.0 * (halved[:, ~law.atom] ** 2) @ smooth
        moved = np.hypot(cosine, sine[:, ~law.atom] @ smooth)
    else:
        moved = np.hypot(whole + fall, turn)
    return log_one_plus(fall, turn), np.log(np.clip(1.0 - whole + moved, 1e-300, 1.0))
