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
WIDE_DEPTH = 7
"""Up to this depth all nodes of a tree are asked of all rows, 64 at once; deeper, each row asks its own."""


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
    """Write the leaves of the rows from `first` to `end` - 1 into `leaves` from `at` on; see `leaf_of`."""
    if len(sets) > 0:
        for row in range(first, end):
            leaves[row - first + at] = leaf_of(cells, row, feature, below, besides, sets)
    elif len(feature) < 2**WIDE_DEPTH:
        _by_nodes(first, end, cells, feature, below, besides, leaves, at)
    else:
        _by_rows(first, end, cells, feature, below, besides, leaves, at)


@numba.njit
def _by_nodes(first, end, cells, feature, below, besides, leaves, at):
    """Of trees of few nodes: each node is asked of all rows of a block, many at once, whether they are in it or not."""
    most = 2 ** (8 * cells.itemsize)
    own, right = np.empty(BLOCK_ROWS, dtype=np.uint8), np.zeros(BLOCK_ROWS, dtype=np.uint8)
    for begin in range(first, end, BLOCK_ROWS):
        size = min(end - begin, BLOCK_ROWS)
        own[:size] = 0
        level = 0
        while level < len(feature):
            for place in range(level + 1):
                node = level + place
                edge, beside = np.int64(below[node]), besides[node]
                if edge >= most:  # all go left
                    continue
                column = cells[feature[node], begin : begin + size]
                if beside < 0 or beside >= most:
                    _step(column, own[:size], right[:size], np.uint8(place), cells.dtype.type(edge))
                else:
                    _step_besides(
                        column, own[:size], right[:size], np.uint8(place), cells.dtype.type(edge),
                        cells.dtype.type(beside),
                    )  # fmt: skip
            _descend(own[:size], right[:size])
            level += level + 1
        for row in range(size):
            leaves[begin - first + at + row] = own[row]


@numba.njit
def _step(column, own, right, place, edge):
    for row in range(len(own)):
        right[row] |= np.uint8((own[row] == place) & (column[row] >= edge))


@numba.njit
def _step_besides(column, own, right, place, edge, beside):
    for row in range(len(own)):
        right[row] |= np.uint8((own[row] == place) & (column[row] >= edge) & (column[row] != beside))


@numba.njit
def _descend(own, right):
    for row in range(len(own)):
        own[row] = np.uint8(own[row] + own[row] + right[row])
        right[row] = np.uint8(0)


@numba.njit
def _by_rows(first, end, cells, feature, below, besides, leaves, at):
    """Of trees of many nodes: all rows of a block take one step before any takes the next one, and none waits."""
    # Unsigned, and never below 0: an index is then not asked whether it counts from the end.
    begin, until = np.uint64(first), np.uint64(end)
    away = np.uint64(at) - begin  # modulo 2**64
    tested, edge, beside = feature.astype(np.uint64), below.astype(np.uint32), besides.astype(np.uint32)
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
def add_trees(first, end, cells, nodes, feature, below, besides, sets, values, scores):
    """Add the values of each row's leaves to `scores`, float64 (n_rows,), tree after tree.

    Args:
        first, end: which rows.
        cells: uint8 or uint16 (n_features, n_rows).
        nodes: int64 (n_trees + 1,), where each tree's nodes begin, and the end; its leaves are one more each.
        feature, below, besides: of all trees, one after another, as `ensemble.Lowered`.
        sets: of the one tree that there is, if it has some.
        values: float64, of the leaves of all trees.
        scores: added to.
    """
    leaves = np.empty(min(BLOCK_ROWS, end - first), dtype=np.int32)
    for begin in range(first, end, BLOCK_ROWS):
        stop = min(end, begin + BLOCK_ROWS)
        for tree in range(len(nodes) - 1):
            low, high = nodes[tree], nodes[tree + 1]
            leaves_of(begin, stop, cells, feature[low:high], below[low:high], besides[low:high], sets, leaves, 0)
            own = values[low + tree : high + tree + 1]
            for row in range(begin, stop):
                scores[row] += own[leaves[row - begin]]


@rows_kernel
def add_class_trees(first, end, cells, nodes, feature, below, besides, sets, values, scores):
    """As `add_trees`, with a value of each leaf for each class.

    Args:
        values: float64 (n_leaves of all trees, n_classes).
        scores: float64 (n_rows, n_classes), added to.
    """
    leaves = np.empty(min(BLOCK_ROWS, end - first), dtype=np.int32)
    for begin in range(first, end, BLOCK_ROWS):
        stop = min(end, begin + BLOCK_ROWS)
        for tree in range(len(nodes) - 1):
            low, high = nodes[tree], nodes[tree + 1]
            leaves_of(begin, stop, cells, feature[low:high], below[low:high], besides[low:high], sets, leaves, 0)
            for row in range(begin, stop):
                leaf = low + tree + leaves[row - begin]
                for place in range(scores.shape[1]):
                    scores[row, place] += values[leaf, place]
