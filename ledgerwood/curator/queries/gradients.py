"""What holds of every query of gradients: the bounds of its parameters, and what a row moves in sums by leaf."""

from typing import get_args

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.grid import STEP, LargeGradients
from ledgerwood.errors import AdjacencyMismatch
from ledgerwood.mechanisms import BoxShifts

MAX_CURVATURE_SCALE = 3.33
"""Largest c, rounded down from phi**2.5 = 3.33019..., for which (g, c h) of the logistic loss has L2 norm at most 1."""

MAX_CLIP = 2.0**8
"""Largest clip, in units of the gradient. A leaf's sum then stays below 2**63 steps for fewer than 2**35 rows, which a
ratio needs: a division, unlike a sum, does not survive a wrap-around."""
MAX_DAMPING = 2.0**40


def leaf_boxes(first: float, second: float, adjacency: Adjacency) -> BoxShifts:
    """The shifts of sums by leaf, where a row adds up to (first, second) to the one leaf that it is in."""
    match adjacency:
        case Adjacency.ADD_REMOVE | Adjacency.ZERO_OUT:
            return BoxShifts(boxes=((first, second),))
        case Adjacency.REPLACE_ONE:
            return one_leaf_or_two((0.0, 2.0 * second), (first, second))
    raise AdjacencyMismatch(f"no shift set is known under adjacency {adjacency!r}")


def one_leaf_or_two(within: tuple[float, ...], contribution: tuple[float, ...]) -> BoxShifts:
    """A replaced row changes inside one leaf by `within`, or takes its contribution from one leaf to another."""
    moved = BoxShifts.moved(boxes=(contribution,))
    return BoxShifts(boxes=(within, *moved.boxes), l1_boxes=(within, *moved.l1_boxes))


def gradient_clip(value: float, name: str = "clip") -> float:
    """A leaf query's or a gain's clip; an error calls it `name`."""
    clip = _validate.positive(name, value, "units of the gradient")
    if not STEP <= clip <= MAX_CLIP:
        raise _validate.fail(name, clip, f"in [{STEP}, {MAX_CLIP}]", "units of the gradient")
    return clip


def require_large_gradients(value: object) -> None:
    """Refuse what is no `LargeGradients`."""
    if value not in get_args(LargeGradients):
        raise _validate.fail("large_gradients", value, "'clip' or 'drop'", "name")


def class_place(value: object) -> int | None:
    """A query's `positive`: a plain whole number, since it is compared with the classes of the rows, or None."""
    return None if value is None else _validate.count("positive", value, "classes", minimum=0)
