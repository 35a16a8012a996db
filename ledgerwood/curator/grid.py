"""The public grid on which gradients, labels and weights are integers."""

from typing import Literal

GRID_EXPONENT = -20
STEP = 2.0**GRID_EXPONENT
PER_UNIT = 1.0 / STEP
"""Steps to a unit."""

Loss = Literal["squared", "logistic"]
LargeGradients = Literal["clip", "drop"]
"""A row whose gradient is beyond the clip counts with the clip, or not at all (DPBoost's gradient-based filtering)."""
