"""Neighbouring data sets as a hypothesis strategy, for property tests of one's own mechanisms."""

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.verification.sensitivity.domains import Data, Domain, Neighbour, Row, RowKind, Rows, domain
from ledgerwood.verification.sensitivity.pair_search import TablePair

if TYPE_CHECKING:
    from ledgerwood.curator import Schema


def neighbours(
    schema: "Schema | None" = None,
    *,
    bounds: tuple[Any, Any] | None = None,
    columns: int | None = None,
    data: Data | None = None,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    min_rows: int = 0,
    max_rows: int = 20,
    rows: RowKind = "valid",
    permuted: bool = False,
) -> st.SearchStrategy[tuple[Data, Neighbour[Data]]]:
    """Draws pairs (data, neighbour) for `replay(fit, data, neighbour)`; `neighbour.data` is the second data set.

    About one changed row in two is an extreme one: every value at an end of its range, missing, or beyond it. Equal
    rows, duplicates and ties are drawn often; pairs shrink towards few rows with the lowest values.

    Args:
        schema: the schema of rows (X, y), with weights where it has a weight bound, or of X alone where it has no
            target.
        bounds: (low, high) of an array's values, for all columns or for each; [-1, 1] without.
        columns: the number of columns of an array (n, d); None for (n,).
        data: an example that replaces these arguments: an array, or a tuple (X, y) or (X, y, weights), whose columns'
            ranges and categories are taken.
        adjacency: how the two differ: a row added or removed (add-remove, zero-out), or replaced.
        min_rows, max_rows: bounds on the number of rows that both data sets have.
        rows: "valid", or "any" with NaN, infinities, 1e300 and unseen categories among the values.
        permuted: True if some neighbours have the same rows in another order.

    Raises:
        InvalidParameter: invalid bounds, data that are not arrays, or invalid numbers of rows.
    """
    least = _validate.count("min_rows", min_rows, "rows", minimum=0)
    most = _validate.count("max_rows", max_rows, "rows", minimum=least)
    if rows not in {"any", "valid"}:
        raise _validate.fail("rows", rows, "'any' or 'valid'", "rows")
    of = domain(data, schema, bounds, columns)
    row = _row_strategy(of, rows)
    alike = st.tuples(row, st.integers(least, most)).map(lambda drawn: (drawn[0],) * drawn[1])
    shared = st.one_of(st.lists(row, min_size=least, max_size=most).map(tuple), alike)
    pairs = shared.flatmap(lambda table: _pair_strategy(table, row, adjacency, permuted=permuted))
    return pairs.map(lambda pair: _built(of, pair))


def _row_strategy(of: Domain, rows: RowKind) -> st.SearchStrategy[Row]:
    extreme = st.sampled_from([row for _, row in of.extremes(rows)])
    mixed = st.tuples(*(_value_strategy(column.values(rows), column.kind, column.ends) for column in of.columns))
    return st.one_of(extreme, mixed)


def _value_strategy(values: list[Any], kind: str, ends: tuple[Any, Any]) -> st.SearchStrategy[Any]:
    notable = st.sampled_from(values)
    match kind:
        case "real":
            return st.one_of(notable, st.floats(*ends, allow_nan=False))
        case "whole":
            return st.one_of(notable, st.integers(*ends))
    return notable


def _pair_strategy(table: Rows, row: st.SearchStrategy[Row], adjacency: Adjacency, *, permuted: bool) -> Any:
    """Of the rows that both have; what is changed may be one of them once more."""
    again = st.one_of(row, st.sampled_from(table)) if table else row
    place = st.integers(0, len(table))
    if adjacency is Adjacency.REPLACE_ONE:
        changes = st.builds(
            lambda gone, new, at: TablePair(shared=table, gone=gone, new=new, at=at), again, again, place
        )
    else:
        changes = st.one_of(
            st.builds(lambda new, at: TablePair(shared=table, new=new, at=at), again, place),
            st.builds(lambda gone, at: TablePair(shared=table, gone=gone, at=at), again, place),
        )
    if not permuted:
        return changes
    orders = st.permutations(range(len(table))).map(lambda order: TablePair(shared=table, order=tuple(order)))
    return st.one_of(changes, orders)


def _built(of: Domain, pair: TablePair) -> tuple[Data, Neighbour[Data]]:
    first, second, origin = pair.tables()
    return of.data(first), Neighbour(data=of.data(second), rows=len(first), origin=origin)
