"""The loops that route rows through a public tree, and how a loop over rows is compiled."""

import functools
import threading
import types
from collections.abc import Callable

import numba

_TEAM = threading.Lock()
THREADED_ROWS = 150_000
"""Below this many rows a team of threads costs more than it gives, and far more on a busy machine."""


def rows_kernel(loop: Callable[..., None]) -> Callable[..., None]:
    """Compile a loop over rows for one thread and for all; its first argument, the number of rows, decides."""
    alone = types.FunctionType(loop.__code__, loop.__globals__, loop.__name__)
    # numba's file cache knows a function by its qualified name: two ways to compile need two names.
    alone.__qualname__ = f"{loop.__qualname__}_alone"
    serial = numba.njit(cache=True, nogil=True)(alone)
    parallel = numba.njit(parallel=True, cache=True, nogil=True)(loop)

    @functools.wraps(loop)
    def run(n_rows: int, *arguments: object) -> None:
        if n_rows < THREADED_ROWS:
            serial(n_rows, *arguments)
            return
        # One team at a time: it takes all cores, and not every threading layer of numba bears a second one.
        with _TEAM:
            parallel(n_rows, *arguments)

    return run


@numba.njit(inline="always")
def leaf_of(cells, row, feature, below, besides, sets):  # type: ignore[no-untyped-def]
    """The leaf of one row: walk the heap from the root. The tree comes as `ensemble.Lowered`."""
    node = 0
    inner = len(feature)
    while node < inner:
        cell = cells[feature[node], row]
        beside = besides[node]
        left = cell < below[node] or cell == beside
        if beside < -1:
            left = cell < sets.shape[1] and sets[-2 - beside, cell]
        node = 2 * node + (1 if left else 2)
    return node - inner


@rows_kernel
def route_rows(n_rows, cells, feature, below, besides, sets, leaves):  # type: ignore[no-untyped-def]
    """Write the leaf of each row into `leaves`, int32 (n_rows,)."""
    for row in numba.prange(n_rows):
        leaves[row] = leaf_of(cells, row, feature, below, besides, sets)


@rows_kernel
def add_tree(n_rows, cells, feature, below, besides, sets, values, scores):  # type: ignore[no-untyped-def]
    """Add the value of each row's leaf to `scores`, float64 (n_rows,)."""
    for row in numba.prange(n_rows):
        scores[row] += values[leaf_of(cells, row, feature, below, besides, sets)]
