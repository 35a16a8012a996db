"""A discrete pair of four outcomes, by hand."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from ledgerwood.accounting import Adjacency, Direction, DiscreteLaplaceEvent
from ledgerwood.accounting.events.choices.pure import corners_of, interpolated, interpolated_below
from ledgerwood.accounting.events.noise.discrete import laplace_corners

RATIOS = np.array([0.25, 0.5, 1.5, 4.0])
MASSES = np.array([0.2, 0.3, 0.4, 0.1])


@pytest.mark.parametrize("epsilon", [0.0, 0.2, math.log(1.5), 1.0, math.log(3.999)])
def test_the_profile_is_a_sum_over_the_outcomes(epsilon: float) -> None:
    corners = corners_of(np.log(MASSES), np.log(RATIOS), -math.inf, -math.inf)
    exact = float(np.maximum(RATIOS - math.exp(epsilon), 0.0) @ MASSES)
    found = float(np.exp(interpolated(corners, np.array([epsilon]))[0]))
    assert exact <= found <= exact * (1 + 1e-11)


def test_what_lies_beyond_the_last_outcome_is_added() -> None:
    """A fifth outcome of mass .01 and ratio 9, given as the mass and the profile beyond the fourth."""
    corners = corners_of(np.log(MASSES), np.log(RATIOS), math.log(0.01), math.log(0.01 * (9.0 - 4.0)))
    for epsilon in (0.0, 0.7, 1.3):
        t = math.exp(epsilon)
        exact = float(np.maximum(RATIOS - t, 0.0) @ MASSES) + 0.01 * (9.0 - t)
        found = float(np.exp(interpolated(corners, np.array([epsilon]))[0]))
        assert exact <= found <= exact * (1 + 1e-11)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, math.log(1.5), 1.0, math.log(3.999)])
def test_from_below_it_is_the_sum_over_the_outcomes_alone(epsilon: float) -> None:
    for beyond in (-math.inf, -50.0):
        corners = corners_of(np.log(MASSES), np.log(RATIOS), beyond, beyond)
        exact = float(np.maximum(RATIOS - math.exp(epsilon), 0.0) @ MASSES)
        found = float(np.exp(interpolated_below(corners, np.array([epsilon]))[0]))
        assert exact * (1 - 1e-11) <= found <= exact


@pytest.mark.parametrize(("scale", "sensitivity"), [(1.0, 1), (0.3, 1), (131071.3, 262144), (7.1, 50), (0.7, 3)])
def test_both_bounds_hold_a_few_floats_before_a_log_ratio(scale: float, sensitivity: int) -> None:
    """A log ratio is itself rounded, which is all of what is left just before the last one."""
    event = DiscreteLaplaceEvent(scale=scale, sensitivity=sensitivity, adjacency=Adjacency.ADD_REMOVE)
    with mp.workdps(60):
        base = mp.exp(-1 / mpf(scale))
        for z in {sensitivity, sensitivity - 1, sensitivity // 2 + 1}:
            t = (2 * z - sensitivity) / scale
            for moved in (t, *(t * (1.0 - k * 2.0**-53) for k in (1, 2, 3, 6, 50, 2**20))):
                # H is P - e^t Q of the numbers from the first on whose log ratio is above t.
                first = int(mp.floor((mpf(moved) * mpf(scale) + sensitivity) / 2)) + 1
                if not moved >= 0.0 or first > sensitivity:
                    continue
                tail = base**first / (1 + base)
                exact = 1 - base ** (sensitivity - first + 1) / (1 + base) - mp.exp(moved) * tail
                above = float(event.log_profile([moved], direction=Direction.REMOVE)[0])
                below = float(interpolated_below(laplace_corners(scale, sensitivity), np.array([moved]))[0])
                assert below <= mp.log(exact) <= above
