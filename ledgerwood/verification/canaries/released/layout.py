"""Bring what fits released into rows of one length: settled by learning fits, the same for every fit after them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.verification.canaries.released.values import Shown

Floats = NDArray[np.float64]
_MOST = 32
"""Columns that are kept as they are; what others say is in the sums over all columns."""
_REACH = 1e6


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Where each number goes.

    Args:
        names: of the parts that learning fits released.
        lengths: of each part, the most that one fit had.
        varied: parts whose length differed between fits: the length is a column too.
    """

    names: tuple[str, ...]
    lengths: tuple[int, ...]
    varied: tuple[bool, ...]

    @classmethod
    def of(cls, fits: Sequence[Shown]) -> "Layout":
        """The layout that holds everything that these fits released."""
        found: dict[str, tuple[int, int]] = {}
        for each in fits:
            for name, values in each.columns.items():
                low, high = found.get(name, (values.size, values.size))
                found[name] = (min(low, values.size), max(high, values.size))
        # A part that some fits do not have is one of varied length.
        counts = {name: sum(name in each.columns for each in fits) for name in found}
        answered = sum(each.failure is None for each in fits)
        return cls(
            names=tuple(found),
            lengths=tuple(high for _, high in found.values()),
            varied=tuple(low < high or counts[name] < answered for name, (low, high) in found.items()),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of each number of a row."""
        named = ["whether the fit failed", "whether a part was new"]
        for name, length, varied in zip(self.names, self.lengths, self.varied, strict=True):
            own = name or "the value"
            if varied:
                named.append(f"the length of {own}")
            named += [own] if length == 1 else [f"{own}[{place}]" for place in range(length)]
        return tuple(named)

    def rows(self, fits: Sequence[Shown]) -> Floats:
        """Float64 (n, columns): NaN where a fit released less, and cut where it released more."""
        table = np.full((len(fits), len(self.columns)), np.nan)
        known = set(self.names)
        for row, each in zip(table, fits, strict=True):
            longer = any(
                name in each.columns and each.columns[name].size > length
                for name, length in zip(self.names, self.lengths, strict=True)
            )
            row[0], row[1] = float(each.failure is not None), float(longer or not known.issuperset(each.columns))
            at = 2
            for name, length, varied in zip(self.names, self.lengths, self.varied, strict=True):
                values = each.columns.get(name, np.zeros(0))[:length]
                if varied:
                    row[at] = float(values.size)
                    at += 1
                row[at : at + values.size] = values
                at += length
        return table


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoder:
    """A fixed function from what a fit released to a short row: the columns that tell most, and sums over all of them.

    Args:
        layout: of the parts.
        kept: columns that vary, the ones that differ most between the two data sets first, at most 32 of them.
        centres, scales, weights: of all columns, for the sums: how far a row is from the middle, and in which
            direction.
    """

    layout: Layout
    kept: NDArray[np.int64]
    centres: Floats
    scales: Floats
    weights: Floats

    @classmethod
    def learned(cls, first: Sequence[Shown], second: Sequence[Shown]) -> "Encoder":
        """Learn from fits of the two data sets."""
        layout = Layout.of([*first, *second])
        a, b = layout.rows(first), layout.rows(second)
        both = np.concatenate([a, b])
        finite = np.isfinite(both)
        filled = np.where(finite, both, 0.0)
        centres, scales = np.zeros(both.shape[1]), np.ones(both.shape[1])
        for place in range(both.shape[1]):
            values = both[finite[:, place], place]
            if values.size:
                low, centres[place], high = np.quantile(values, [0.25, 0.5, 0.75])
                spread = float(high - low) or float(np.abs(values - centres[place]).mean())
                scales[place] = spread if np.isfinite(spread) and spread > 0.0 else 1.0
        x, y = (np.clip((part - centres) / scales, -_REACH, _REACH) for part in np.split(filled, [len(a)]))
        x, y = (np.where(np.isfinite(part), part, 0.0) for part in (x, y))
        shift = x.mean(axis=0) - y.mean(axis=0)
        variance = 0.5 * (x.var(axis=0) + y.var(axis=0)) + 1e-3
        far = np.abs(np.log1p(np.abs(x)).mean(axis=0) - np.log1p(np.abs(y)).mean(axis=0))
        missing = np.abs(np.isfinite(a).mean(axis=0) - np.isfinite(b).mean(axis=0))
        varies = np.array([np.unique(column).size > 1 for column in both.T])  # NaNs are one value
        order = np.argsort(-(np.abs(shift) / np.sqrt(variance) + far + missing), kind="stable")
        kept = order[varies[order]][:_MOST].astype(np.int64)
        return cls(layout=layout, kept=kept, centres=centres, scales=scales, weights=shift / variance)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers of an encoded row."""
        columns = self.layout.columns
        own = tuple(columns[place] for place in self.kept.tolist())
        return own if len(own) < 2 else (*own, "the distance of all values from their middle", "a sum of all values")

    def __call__(self, fits: Sequence[Shown]) -> Floats:
        """Float64 (n, k), k >= 1."""
        rows = self.layout.rows(fits)
        if not len(self.kept):
            return np.zeros((len(fits), 1))
        own = rows[:, self.kept]
        if len(self.kept) < 2:
            return own
        with np.errstate(all="ignore"):
            scaled = np.clip((rows - self.centres) / self.scales, -_REACH, _REACH)
        scaled = np.where(np.isfinite(scaled), scaled, 0.0)
        distance = np.log1p(np.abs(scaled)).mean(axis=1)
        return np.column_stack([own, distance, scaled @ self.weights])
