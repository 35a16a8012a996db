"""PrivaTree's rule for its budget (2023, Corollary 1 and Equations 7 to 10), corrected for several features.

Derivation: docs/explanation/privatree.md#privatree-budget.
"""

import math

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator import label_range

_LEAST = 1e-6
"""Nats that nobody misses: of more rows than there are the rule would leave less than labels can be drawn with."""


def label_error_constant(classes: int) -> float:
    """max over p of log(1/p) (1 - (1 - (1-p)^K) / (K p)): rows that permute-and-flip may lose in a leaf, at rate 1.

    Its expected loss at a rate of r nats a row is at most this over r, whatever the counts (McKenna and Sheldon 2020).
    For two classes it is 1 / (2 e), and it grows with K. To nine digits, which is
    plenty for a rule that divides a budget.

    Args:
        classes: K >= 2.
    """
    classes = _validate.count("classes", classes, "classes", minimum=2)
    # By p = exp(-t) for a gap of t nats; beyond 2 log K + 20 the loss only falls.
    gap = np.linspace(0.0, 2.0 * math.log(classes) + 20.0, 200_001)[1:]
    p = np.exp(-gap)
    inside = -np.expm1(classes * np.log1p(-p)) / (classes * p)
    return float(np.max(gap * (1.0 - inside)))


def leaf_epsilon(
    epsilon: float, *, depth: int, classes: int, rows: int | None, error: float, adjacency: Adjacency
) -> float:
    """What the labels need so that they lose at most `error` of the rows, at most half of epsilon; Equations 7, 8.

    The paper's factor 2 stands for the range of a leaf's counts, which is 1 where a row is added or removed.

    Args:
        epsilon: of the tree, in nats.
        depth: levels of splits.
        classes: K.
        rows: a public number of rows; None: unknown, and the labels get half.
        error: E_max, in (0, 1), share of the rows.
        adjacency: of neighbouring data sets.

    Raises:
        InvalidParameter: an error outside (0, 1).
    """
    error = label_error_share(error)
    if rows is None:
        return epsilon / 2.0
    needed = label_range(adjacency).range * 2.0**depth * label_error_constant(classes) / (rows * error)
    return min(epsilon / 2.0, max(needed, _LEAST))


def label_error_share(error: object) -> float:
    """A share of the rows that labels may lose.

    Raises:
        InvalidParameter: outside (0, 1).
    """
    share = _validate.real("label_error", error, "share of the rows")
    if not 0.0 < share < 1.0:
        raise _validate.fail("label_error", error, "in (0, 1)", "share of the rows")
    return share
