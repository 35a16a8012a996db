"""The loops that route rows through a public tree, and how a loop over rows is compiled and shared among threads."""
# mypy: disable-error-code="no-untyped-def"

import functools
from collections.abc import Callable

import numba
import numpy as np

from ledgerwood.threads import share_out

CHUNK_ROWS = 16_384
"""Rows that are summed apart from others: a loop over rows is parted between them."""
THREADED_ROWS = 150_000
"""Below this many rows threads cost more than they give."""
BLOCK_ROWS = 2_048
"""Rows that are routed level by level, together: their leaves stay in the fastest memory."""


def rows_kernel(loop: Callable[..., None]) -> Callable[..., None]:
    """Compile a loop over the rows from its first argument to its second one; who calls it gives their number instead.

    A loop over many rows is shared among threads. Each part begins at a multiple of `CHUNK_ROWS`.
    """
    compiled = numba.njit(cache=True, nogil=True)(loop)

    @functools.wraps(loop)
    def run(n_rows: int, *arguments: object) -> None:
        if n_rows < THREADED_ROWS:
            compiled(0, n_rows, *arguments)
        else:
            share_out(compiled, n_rows, CHUNK_ROWS, arguments)

    return run


def parts_kernel(loop: Callable[..., None]) -> Callable[..., None]:
    """Compile a loop over some parts of the work, from its first argument to its second one.

    Who calls it gives two numbers instead: how often a row is looked at in all, and how many parts there are.
    """
    compiled = numba.njit(cache=True, nogil=True)(loop)

    @functools.wraps(loop)
    def run(visits: int, parts: int, *arguments: object) -> None:
        if visits < THREADED_ROWS:
            compiled(0, parts, *arguments)
        else:
            share_out(compiled, parts, 1, arguments)

    return run


@numba.njit(inline="always")
def leaf_of(cells, row, feature, below, besides, sets):
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


@numba.njit(nogil=True)
def leaves_of(first, end, cells, feature, below, besides, sets, leaves, at):
    """Write the leaves of the rows from `first` to `end` - 1 into `leaves` from `at` on; see `leaf_of`.

    All rows take one step before any takes the next one: a step of one row need not wait for another row's.
    """
    # Unsigned, and never below 0: an index is then not asked whether it counts from the end.
    row, until = np.uint64(first), np.uint64(end)
    away = np.uint64(at) - row  # modulo 2**64
    if len(sets) > 0:
        while row < until:
            leaves[row + away] = leaf_of(cells, row, feature, below, besides, sets)
            row += np.uint64(1)
        return
    tested, edge, beside = feature.astype(np.uint64), below.astype(np.uint32), besides.astype(np.uint32)
    begin = row
    while begin < until:
        stop = min(begin + np.uint64(BLOCK_ROWS), until)
        for each in range(begin, stop):
            leaves[each + away] = 0
        level = np.uint64(0)
        while level < np.uint64(len(tested)):
            for each in range(begin, stop):
                leaf = np.uint64(leaves[each + away])
                cell = np.uint32(cells[tested[level + leaf], each])
                right = np.uint64(cell >= edge[level + leaf]) & np.uint64(cell != beside[level + leaf])
                leaves[each + away] = leaf + leaf + right
            level += level + np.uint64(1)
        begin = stop


@rows_kernel
def route_rows(first, end, cells, feature, below, besides, sets, leaves):
    """Write the leaf of each row into `leaves`, int32 (n_rows,)."""
    leaves_of(first, end, cells, feature, below, besides, sets, leaves, first)


@rows_kernel
def add_tree(first, end, cells, feature, below, besides, sets, values, scores):
    """Add the value of each row's leaf to `scores`, float64 (n_rows,)."""
    leaves = np.empty(min(BLOCK_ROWS, end - first), dtype=np.int32)
    for begin in range(first, end, BLOCK_ROWS):
        stop = min(end, begin + BLOCK_ROWS)
        leaves_of(begin, stop, cells, feature, below, besides, sets, leaves, 0)
        for row in range(begin, stop):
            scores[row] += values[leaves[row - begin]]
