"""Neighbours of a kit's rows: worst-case rows, odd ones, and rows on which it hangs which values occur at all."""

from typing import Any

import numpy as np

from ledgerwood.schema import Schema
from ledgerwood.verification.sensitivity.domains import (
    Neighbour,
    duplicated,
    permuted,
    removed,
    replaced,
    worst_rows,
)
from ledgerwood.verification.testing.kit_rows import ODD, Data, kit_rows, odd_row, rare_rows, with_row


def neighbours_of(data: Data, schema: Schema, *, replaces: bool, seed: int) -> dict[str, Neighbour[Any]]:
    """Neighbours by what is changed: worst-case rows, odd ones, one less, one twice, another order.

    Args:
        data: rows of the schema, at least 6.
        schema: resolved, with a target.
        replaces: whether a row is replaced, or is one more or less.
        seed: of the other order.
    """
    found: dict[str, Neighbour[Any]] = {}
    rows = [(name, row, label) for name, row, label in worst_rows(schema)]
    rows += [(odd, *odd_row(schema, odd)) for odd in ODD]
    for name, row, label in rows:
        if replaces:
            found[f"a row replaced: {name}"] = replaced(data, 3, row, label)
        else:
            X, y = with_row(data, row, label)
            found[f"a row more: {name}"] = Neighbour(data=(X, y), rows=len(X) - 1, origin=(*range(len(X) - 1), -1))
    if not replaces:
        found["a row less"] = removed(data, 5)
        found["a row twice"] = duplicated(data, 4)
    found["another order"] = permuted(data, np.random.default_rng(seed))
    return found


def rare_pairs(schema: Schema, n_rows: int, *, replaces: bool) -> list[tuple[str, Data, Neighbour[Any]]]:
    """Data sets in which single rows decide which values, categories and classes occur, each with such a row gone.

    Args:
        schema, replaces: as in `neighbours_of`.
        n_rows: of each data set, at least.
    """
    found: list[tuple[str, Data, Neighbour[Any]]] = []
    for last in (False, True):
        data, places = rare_rows(schema, n_rows, last=last)
        for place in places:
            name = f"the only row with rare values, {place + 1} of {len(places)}" + (", reversed" if last else "")
            found.append((name, data, _without(data, place, schema, replaces=replaces)))
        alike = data[0][len(places) :], data[1][len(places) :]
        name = "all labels alike" + (", reversed" if last else "")
        found.append((name, alike, _without(alike, 1, schema, replaces=replaces)))
    one = kit_rows(schema, 1)
    found.append(("the only row", one, _without(one, 0, schema, replaces=replaces)))
    return found


FEW = 16


def few_pairs(schema: Schema, *, replaces: bool, seed: int) -> list[tuple[str, Data, Neighbour[Any]]]:
    """Data sets of few rows with labels at random, each without the first of them, until there is none.

    Here one row changes which split or label is the best one, which among many rows it seldom does: an exact choice
    that goes past the mechanism is seen only where it changes.

    Args:
        schema, replaces, seed: as in `neighbours_of`.
    """
    X, y = kit_rows(schema, FEW)
    y = y[np.random.default_rng(seed).permutation(FEW)]
    pairs = [(f"the first of {FEW - n} rows", (X[n:], y[n:])) for n in range(FEW)]
    return [(name, data, _without(data, 0, schema, replaces=replaces)) for name, data in pairs]


def _without(data: Data, place: int, schema: Schema, *, replaces: bool) -> Neighbour[Any]:
    """The neighbour without a row, or with the last row in its place."""
    X, y = data
    if not replaces:
        return removed(data, place)
    if len(y) > 1:
        return replaced(data, place, list(X[-1]), y[-1])
    row, label = next((row, label) for _, row, label in worst_rows(schema))
    return replaced(data, place, row, label)
