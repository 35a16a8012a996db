"""A discrete pair of four outcomes, by hand."""

import math

import numpy as np
import pytest

from ledgerwood.accounting.events.corners import corners_of, interpolated

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
