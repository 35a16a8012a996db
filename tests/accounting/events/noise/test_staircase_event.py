"""The staircase against its density, piece by piece, for every shift up to the sensitivity."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import LaplaceEvent, PoissonSampled, PureEvent, StaircaseEvent
from ledgerwood.errors import InvalidParameter

A = Adjacency.ADD_REMOVE
ORDERS = [1 + 1e-6, 1.5, 2.0, 7.3]
EPSILONS = [0.0, 1e-9, 0.1, 0.5, 1.0, 2.5]


def staircase(epsilon: float, inner_width: float) -> StaircaseEvent:
    return StaircaseEvent(epsilon=epsilon, inner_width=inner_width, adjacency=A)


def pieces(epsilon: float, width: float, shift: float) -> list[tuple[mp.mpf, mp.mpf]]:
    """(P, Q) of every interval on which both densities are constant; what is left out is below 10^-30."""
    e, w, d = mp.mpf(epsilon), mp.mpf(width), mp.mpf(shift)
    count = int(70 / epsilon) + 3
    ends = [w + k for k in range(count)]
    own = [-x for x in ends] + ends
    points = sorted({*own, *(x + d for x in own)})
    height = (1 - mp.exp(-e)) / (2 * (w + mp.exp(-e) * (1 - w)))

    def density(x: mp.mpf) -> mp.mpf:
        return height * mp.exp(-e * mp.ceil(abs(x) - w)) if abs(x) > w else height

    found = []
    for left, right in itertools.pairwise(points):
        middle = (left + right) / 2
        found.append((density(middle - d) * (right - left), density(middle) * (right - left)))
    return found


CASES = [(0.3, 0.0), (0.3, 0.2), (1.0, 0.5), (1.0, 0.9), (2.5, 0.223), (0.7, 1.0), (30.0, 0.1)]


@pytest.mark.slow_after(1)  # the truth by integrals or enumeration
@pytest.mark.parametrize(("epsilon", "width"), CASES)
@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_profile_and_renyi_by_the_pieces_of_the_density(epsilon: float, width: float, rate: float) -> None:
    event = PoissonSampled(staircase(epsilon, width), sampling_rate=rate)
    with mp.workdps(50):
        q, atoms = mp.mpf(rate), pieces(epsilon, width, 1.0)
        assert abs(mp.fsum(x for x, _ in atoms) - 1) < mp.mpf(10) ** -28
        mixed = [((1 - q) * y + q * x, y) for x, y in atoms]
        for direction in Direction:
            ends = mixed if direction is Direction.REMOVE else [(y, x) for x, y in mixed]
            for t, value in zip(EPSILONS, event.log_profile(EPSILONS, direction=direction), strict=True):
                exact = mp.fsum(max(x - mp.exp(mp.mpf(t)) * y, 0) for x, y in ends)
                found = mp.exp(mp.mpf(float(value)))
                assert exact * (1 - mp.mpf(10) ** -15) - mp.mpf(10) ** -28 <= found
                assert found <= exact * (1 + mp.mpf(10) ** -12) + mp.mpf(10) ** -18
            for order, value in zip(ORDERS, event.renyi(ORDERS, direction=direction), strict=True):
                a = mp.mpf(order)
                moment = mp.fsum(y * ((x / y) ** a - 1 - a * (x / y - 1)) for x, y in ends)
                exact = mp.log1p(moment) / (a - 1)
                assert -(mp.mpf(10) ** -18) <= (mp.mpf(float(value)) - exact) / exact < 1e-12


@pytest.mark.slow  # the truth by integrals or enumeration
@given(
    epsilon=st.floats(0.5, 5.0),
    width=st.floats(0.0, 1.0),
    shift=st.floats(0.01, 1.0),
    t=st.floats(0.0, 5.0),
)
@settings(max_examples=60)
def test_a_smaller_shift_is_dominated(epsilon: float, width: float, shift: float, t: float) -> None:
    with mp.workdps(40):
        exact = mp.fsum(max(x - mp.exp(mp.mpf(t)) * y, 0) for x, y in pieces(epsilon, width, shift))
        found = staircase(epsilon, width).log_profile([t], direction=Direction.REMOVE)[0]
        assert exact <= mp.exp(mp.mpf(float(found))) + mp.mpf(10) ** -28


@given(epsilon=st.floats(1e-9, 700.0), width=st.floats(0.0, 1.0), t=st.floats(0.0, 700.0))
def test_it_costs_no_more_than_any_mechanism_of_its_epsilon(epsilon: float, width: float, t: float) -> None:
    event, worst = staircase(epsilon, width), PureEvent(epsilon=epsilon, adjacency=A)
    assert event.pure_epsilon() == epsilon
    assert np.all(event.renyi(ORDERS) <= worst.renyi(ORDERS) * (1 + 1e-12))
    for direction in Direction:
        own, other = (np.exp(e.log_profile([t, 0.0], direction=direction)) for e in (event, worst))
        assert np.all(own <= other * (1 + 1e-12))
        # the total variation distance is at least that of Laplace noise of half the epsilon
        assert own[1] >= 0.5 * -math.expm1(-epsilon) * (1 - 1e-12)


@pytest.mark.parametrize("width", [0.0, 1e-300, 1e-5, 0.49999, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("epsilon", [1e-100, 1e-9, 1.0, 700.0, 1e5, 1e100])
def test_extreme_values_by_the_closed_form(epsilon: float, width: float) -> None:
    event = staircase(epsilon, width)
    with mp.workdps(400):
        e, w, fall = mp.mpf(epsilon), mp.mpf(width), mp.exp(-mp.mpf(epsilon))
        height = (1 - fall) / (2 * (w + fall * (1 - w)))
        share = mp.mpf(1) / 2 + min(w, 1 - w) * height
        for t in (0.0, epsilon / 3, epsilon):
            exact = share * (1 - mp.exp(mp.mpf(t) - e))
            found = mp.exp(mp.mpf(float(event.log_profile([t], direction=Direction.ADD)[0])))
            assert exact <= found <= exact * (1 + mp.mpf(10) ** -12)


def test_without_a_step_inside_it_is_half_as_likely_to_move() -> None:
    """Widths 0 and 1 are one law."""
    none, whole = staircase(0.8, 0.0), staircase(0.8, 1.0)
    np.testing.assert_allclose(none.renyi(ORDERS), whole.renyi(ORDERS), rtol=1e-13)
    assert np.exp(none.log_profile([0.0], direction=Direction.ADD)[0]) == pytest.approx(
        0.5 * -math.expm1(-0.8), rel=1e-13
    )


def test_it_reveals_more_than_laplace_noise_of_the_same_epsilon() -> None:
    laplace = LaplaceEvent(noise_multiplier=1.0, adjacency=A)
    best = staircase(1.0, 1 / (1 + math.exp(0.5)))
    assert np.all(best.renyi(ORDERS) > laplace.renyi(ORDERS))


@pytest.mark.parametrize("width", [-0.1, 1.1, math.nan, True, "0.5"])
def test_a_bad_width_is_refused(width: object) -> None:
    with pytest.raises(InvalidParameter, match="inner_width=.*sensitivities"):
        StaircaseEvent(epsilon=1.0, inner_width=width, adjacency=A)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, 1e101])
def test_a_bad_epsilon_is_refused(epsilon: float) -> None:
    with pytest.raises(InvalidParameter, match="epsilon=.*nats"):
        staircase(epsilon, 0.5)
