"""Outputs of an unknown mechanism: called, counted, checked, brought into one shape, and converted to rows of numbers.

The conversion is learned from the learning draws, then fixed: docs/explanation/black-box.md#black-box-encoding.
"""

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import AuditFailed
from ledgerwood.verification.black_box.encoding import row_bits
from ledgerwood.verification.black_box.leaves import Key, Leaf, as_outputs, leaves, runs_in
from ledgerwood.verification.black_box.readers import Lengths, Numbers, Reader, Unread, bytes_of, numbers_of, texts_of

_MOST = 4096
"""Columns of outputs that are not plain arrays."""
_PRESENT = -1


@final
@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One number of an output's row.

    Args:
        key: the leaf that it is read from.
        part: the part of the leaf's reader; -1 for whether the leaf is there.
        name: in words.
    """

    key: Key
    part: int
    name: str


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoding:
    """A function from one output to a row of numbers; what it does not know becomes NaN.

    Args:
        readers: the readers of each leaf.
        columns: in order.
        plain: the shape of one output, where all of them were arrays of real numbers of this shape; else None.
        kept: the numbers of a plain output that are columns; None for all.
        notes: what is not looked at, in words.
        unread: whether some leaf is too varied to be looked at.
    """

    readers: dict[Key, Reader]
    columns: tuple[OutputColumn, ...]
    plain: tuple[int, ...] | None
    kept: tuple[int, ...] | None
    notes: tuple[str, ...]
    unread: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def wide(self) -> bool:
        """True if some numbers are whole ones beyond 2^53."""
        return any(isinstance(reader, Numbers) and reader.limbs > 0 for reader in self.readers.values())

    def only(self, places: Sequence[int]) -> "Encoding":
        """The encoding restricted to these columns."""
        kept = None
        if self.plain is not None:
            before = range(len(self.columns)) if self.kept is None else self.kept
            kept = tuple(before[place] for place in places)
        return replace(self, columns=tuple(self.columns[place] for place in places), kept=kept)

    def __call__(self, outputs: Any, runs: int) -> FloatArray:
        """Rows of one call's outputs, shape (runs, columns), laid out by column: scores read column by column."""
        if self.plain is not None and _plain_shape(outputs) == self.plain:
            block = outputs.reshape(runs, -1)
            return np.asfortranarray(block if self.kept is None else block[:, list(self.kept)], dtype=np.float64)
        values = np.full((runs, len(self.columns)), np.nan, order="F")
        wanted: dict[Key, list[int]] = {}
        for place, column in enumerate(self.columns):
            wanted.setdefault(column.key, []).append(place)
            if column.part == _PRESENT:
                values[:, place] = 0.0
        for leaf in leaves(outputs, runs):
            places = wanted.get(leaf.key)
            if places:
                self._fill(values, leaf, places)
        return values

    def _fill(self, values: FloatArray, leaf: Leaf, places: list[int]) -> None:
        rows: Any = slice(None) if leaf.rows is None else leaf.rows
        parts = [place for place in places if self.columns[place].part != _PRESENT]
        found = self.readers[leaf.key].columns(leaf.cells, [self.columns[place].part for place in parts])
        for place, column in zip(parts, found, strict=True):
            values[rows, place] = column
        for place in places:
            if self.columns[place].part == _PRESENT:
                values[rows, place] = 1.0


def _plain_shape(outputs: Any) -> tuple[int, ...] | None:
    """Of one output, where all outputs are an array of real numbers."""
    if type(outputs) is np.ndarray and outputs.dtype.kind in "biuf":
        shape: tuple[int, ...] = outputs.shape[1:]
        return shape
    return None


def learned(samples: Sequence[tuple[Any, int]]) -> Encoding:
    """The encoding that the outputs of the learning draws ask for.

    Args:
        samples: outputs and their number, of each call.

    Raises:
        AuditFailed: an output of a type that cannot be taken apart.
    """
    shapes = {_plain_shape(outputs) for outputs, _ in samples}
    shape = next(iter(shapes))
    if len(shapes) == 1 and shape is not None:
        wide = any(numbers_of([outputs]).limbs for outputs, _ in samples)
        if not wide:
            return _of_plain(shape)
    found: dict[Key, list[Leaf]] = {}
    for outputs, runs in samples:
        for leaf in leaves(outputs, runs):
            found.setdefault(leaf.key, []).append(leaf)
    total = sum(runs for _, runs in samples)
    present = Counter({key: sum(len(leaf.cells) for leaf in parts) for key, parts in found.items()})
    readers: dict[Key, Reader] = {}
    columns: list[OutputColumn] = []
    notes: list[str] = []
    unread = False
    for key, times in present.most_common():
        reader = _reader(key, found[key])
        if len(columns) + len(reader.words) >= _MOST:
            notes.append(f"of {len(found)} parts of the outputs {len(readers)} were looked at, from {key[0]} on none")
            break
        name, kind = key
        readers[key] = reader
        columns += [OutputColumn(key, part, words.replace("{}", name)) for part, words in enumerate(reader.words)]
        if times < total:
            columns.append(OutputColumn(key, _PRESENT, f"whether {name} is {_article(kind)}"))
        notes += [words.replace("{}", name) for words in reader.notes]
        unread |= any("have a distinct form" in words for words in reader.notes)
    return Encoding(readers=readers, columns=tuple(columns), plain=None, kept=None, notes=tuple(notes), unread=unread)


def _article(kind: str) -> str:
    return {"number": "a number", "text": "a text", "bytes": "bytes", "nothing": "None"}.get(kind, "there")


def _of_plain(shape: tuple[int, ...]) -> Encoding:
    places = itertools.product(*(range(size) for size in shape))
    names = ["output" + "".join(f"[{at}]" for at in place) for place in places]
    return Encoding(
        readers={(name, "number"): Numbers() for name in names},
        columns=tuple(OutputColumn((name, "number"), 0, name) for name in names),
        plain=shape, kept=None, notes=(), unread=False,
    )  # fmt: skip


def _reader(key: Key, parts: list[Leaf]) -> Reader:
    cells: list[Any] = [leaf.cells for leaf in parts]
    match key[1]:
        case "number":
            return numbers_of(cells)
        case "text":
            return texts_of(cells)
        case "bytes":
            return bytes_of(cells)
        case "length":
            return Lengths()
        case "nothing":
            return Unread()
    kinds = sorted({type(cell).__name__ for part in cells for cell in part})
    raise AuditFailed(
        f"{key[0]} is of type {', '.join(kinds)}: numbers, texts, bytes, None, and arrays, tuples, lists, mappings, "
        "sets and dataclasses of them can be audited. Return what the mechanism releases as one of these"
    )


def varying(first: FloatArray, second: FloatArray, *, bits: bool) -> NDArray[np.int64]:
    """The columns that have more than one value in these rows: of bits, if those are looked at."""
    found = []
    for place in range(first.shape[1]):
        columns = (first[:, place], second[:, place])
        start = columns[0][:1]
        if bits:
            same = all(
                bool((np.ascontiguousarray(part).view(np.int64) == np.ascontiguousarray(start).view(np.int64)).all())
                for part in columns
            )
        elif math.isnan(start[0]):
            same = all(bool(np.isnan(part).all()) for part in columns)
        else:
            same = all(bool((part == start[0]).all()) for part in columns)
        if not same:
            found.append(place)
    return np.array(found, np.int64)


Sampler = Callable[[Any, int, np.random.Generator], Any]
"""(data set, n, generator) -> outputs of n independent runs, an array of shape (n, ...)."""
NonFinite = Literal["outcome", "refuse"]
_VALUES = 2_000_000
"""Numbers that are asked for in one call, about: 16 MB, of which caches hold more than of larger blocks."""
_KINDS = dict.fromkeys("biuf", "numbers") | {"c": "complex numbers", "U": "texts", "S": "bytes"}
_HEAD, _VARIED = 1000, 50
"""Outputs that are compared with those of the first call, and how many of them must differ from the most frequent."""
_FOREIGN, _COMPARED = 1e-14, 64
"""Probability of refusing, by one column of one call, a sampler that is right; and how many columns are compared."""
_REPEATED, _WHOLE = 8, 100_000
"""Columns in which repeated noise is looked for, and how many outputs of a call."""


@final
@dataclass(slots=True, eq=False)
class OutputDraws:
    """The mechanism, its outputs brought into shape (n, k) of float64, and how many were drawn.

    Args:
        sampler: the mechanism.
        pair: the two data sets.
        rng: handed to the sampler.
        non_finite: whether NaN and infinities are outcomes like others.

    `first` learns how outputs are read; from then on each output is read by itself.

    Raises:
        AuditFailed: the sampler raised (its error is the cause), did not return n outputs, returned the same outputs
            twice, outputs of another distribution than before, or noise that is repeated within a call.
    """

    sampler: Sampler
    pair: tuple[Any, Any]
    rng: np.random.Generator
    non_finite: NonFinite
    drawn: int = 0
    seconds: float = 0.0
    _encoding: Encoding | None = field(default=None)
    _heads: dict[int, FloatArray] = field(default_factory=dict)
    _spread: dict[int, FloatArray] = field(default_factory=dict)
    _calls: dict[int, list[FloatArray]] = field(default_factory=dict)
    _kind: str | None = field(default=None)

    @property
    def encoding(self) -> Encoding:
        """The encoding of the outputs."""
        if self._encoding is None:
            raise RuntimeError("nothing was drawn yet: how outputs are read is learned from the first ones")
        return self._encoding

    def use(self, pair: tuple[Any, Any]) -> None:
        """Go on with another pair, whose outputs may have another shape."""
        self.pair, self._encoding, self._kind = pair, None, None
        self._heads, self._spread, self._calls = {}, {}, {}

    def first(self, n: int) -> list[FloatArray]:
        """Outputs of n runs on each data set, from which it is learned how outputs are read; shape (n, k) each."""
        raw = [self._raw(side, n) for side in (0, 1)]
        try:
            self._encoding = learned([(outputs, n) for outputs in raw])
            return [self._checked(side, raw[side], n) for side in (0, 1)]
        except (ValueError, TypeError) as error:
            raise self._unreadable(error) from error

    def fails(self, side: int, n: int) -> bool:
        """Returns whether the mechanism raises on this data set."""
        try:
            self._raw(side, n)
        except AuditFailed:
            return True
        return False

    def trial(self, n: int) -> None:
        """Draw n outputs on each data set, and measure only the time."""
        for side in (0, 1):
            self._raw(side, n)

    def keep(self, columns: Sequence[int], fit: Sequence[FloatArray]) -> list[FloatArray]:
        """Only these columns from now on; `fit` as far as it is of these."""
        everything = len(columns) == len(self.encoding.columns)
        self._heads = {side: rows[:, columns] for side, rows in self._heads.items()}
        self._spread = {side: rows[:, [j for j in columns if j < _COMPARED]] for side, rows in self._spread.items()}
        for side, calls in self._calls.items():
            self._calls[side] = [rows[:, [j for j in columns if j < _REPEATED]] for rows in calls]
        self._encoding = self.encoding.only(columns)
        return list(fit) if everything else [np.asfortranarray(part[:, columns]) for part in fit]

    def once(self, side: int, n: int) -> FloatArray:
        """Outputs of n runs on one data set, shape (n, k), in one call."""
        raw = self._raw(side, n)
        try:
            return self._checked(side, raw, n)
        except (ValueError, TypeError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> AuditFailed:
        return AuditFailed(f"the sampler's outputs cannot be taken apart ({type(error).__name__}: {error})")

    def _raw(self, side: int, n: int) -> Any:
        name, start = f"pair[{side}]", time.perf_counter()
        try:
            raw = as_outputs(self.sampler(self.pair[side], n, self.rng))
        except Exception as error:
            raise AuditFailed(
                f"the sampler raised {type(error).__name__} on {name}, n={n}: {error}. A mechanism that may "
                "fail must return an output for this"
            ) from error
        self.seconds += time.perf_counter() - start
        if runs_in(raw) != n:
            shape = f"an array of shape {raw.shape}" if isinstance(raw, np.ndarray) else f"{runs_in(raw)} outputs"
            raise AuditFailed(
                f"the sampler returned {shape} on {name}: the first axis must be the n={n} runs that were asked for"
            )
        self.drawn += n
        return raw

    def _checked(self, side: int, raw: Any, n: int) -> FloatArray:
        name = f"pair[{side}]"
        self._require_kind(raw, name)
        values = self.encoding(raw, n)
        if self.non_finite == "refuse" and not np.isfinite(values).all():
            bad = int((~np.isfinite(values).all(axis=1)).sum())
            raise AuditFailed(f"{bad} of {n} outputs on {name} are NaN or infinite, and non_finite='refuse'")
        self._require_fresh(side, values[:_HEAD], name)
        self._require_one_law(side, values[:: math.ceil(n / (2 * _HEAD)), :_COMPARED], name)
        self._require_unrepeated(side, values[:, :_REPEATED], name)
        return values

    def _require_kind(self, raw: Any, name: str) -> None:
        """An array's type is that of all its runs: numpy makes texts of numbers for the sake of one."""
        if not isinstance(raw, np.ndarray) or raw.dtype.kind not in _KINDS:
            return
        kind = _KINDS[raw.dtype.kind]
        if kind == "numbers" and self.encoding.wide and raw.dtype.kind in "iu":
            kind = "integers beyond 2^53"
        if self._kind is None:
            self._kind = kind
        elif kind != self._kind:
            raise AuditFailed(
                f"outputs are {kind} (dtype {raw.dtype}) on {name}, and were {self._kind} before: every run must "
                "return an output of one kind, whatever other runs return. A list of outputs is read one by one"
            )

    def _require_fresh(self, side: int, head: FloatArray, name: str) -> None:
        """Refuse a sampler with a fixed seed: testing an event on the outputs it was learned from proves nothing."""
        before = self._heads.get(side)
        if before is None:
            self._heads[side] = head.copy()
            return
        size = min(len(before), len(head))
        same = (before[:size] == head[:size]) | (np.isnan(before[:size]) & np.isnan(head[:size]))
        for column in np.flatnonzero(same.all(axis=0)):
            _, times = np.unique(row_bits(head[:size, [column]]), return_counts=True)
            if size - times.max() >= _VARIED:
                raise AuditFailed(
                    f"two calls of the sampler on {name} returned the same {size} outputs: runs are not independent. "
                    "Draw from the generator that is handed over, not from a seed"
                )

    def _require_one_law(self, side: int, some: FloatArray, name: str) -> None:
        """A sampler that keeps a state, or draws noise once a call, has no independent outputs.

        The outputs are taken at equal steps: some samplers return them sorted, which does not matter to a test that
        counts.
        """
        before = self._spread.get(side)
        if before is None:
            self._spread[side] = some.copy()
            return
        # Each sample is that far from its law with probability _FOREIGN / 2 at most (Massart 1990, Theorem 1).
        most = math.sqrt(math.log(4.0 / _FOREIGN) / 2.0) * (len(before) ** -0.5 + len(some) ** -0.5)
        for old, new in zip(before.T, some.T, strict=False):
            if _gap(old, new) > most:
                raise AuditFailed(
                    f"two calls of the sampler on {name} returned outputs with different distributions: its runs are "
                    "not independent. Noise must be fresh in each of the n runs, and no state be kept between calls"
                )

    def _require_unrepeated(self, side: int, values: FloatArray, name: str) -> None:
        """Noise that several runs of a call share. It is looked for in the first two calls on each data set.

        Each of two equal values is as likely in one call as in the other, for any order and distribution:
        it is not chance if this many occur in one call only. docs/explanation/black-box.md#repeated-noise.
        """
        calls = self._calls.setdefault(side, [])
        if len(calls) >= 2:
            return
        calls.append(values[:_WHOLE].copy(order="F"))
        if len(calls) < 2:
            return
        one, two = (len(call) for call in calls)
        # The probability that two places of the two calls are of one call.
        within = (one * (one - 1) + two * (two - 1)) / ((one + two) * (one + two - 1))
        for before, now in zip(calls[0].T, calls[1].T, strict=False):
            both = np.concatenate([before, now])
            repeated, alone = _repeats(both, one)
            if repeated and float(stats.binom.sf(alone - 1, repeated, within)) < _FOREIGN:
                raise AuditFailed(
                    f"of {repeated} values that two calls of the sampler on {name} returned more than once, {alone} "
                    "came from one call only: the runs of a call share noise. Draw noise for each of the n runs"
                )

    def several(self, side: int, n: int) -> Iterator[FloatArray]:
        """Outputs of n runs, in as many calls as the memory limit requires."""
        wide = max(len(self.encoding.columns), 1)
        most = max(_VALUES // wide, 1000)
        while n > 0:
            part = min(n, most)
            yield self.once(side, part)
            n -= part


def _repeats(both: FloatArray, border: int) -> tuple[int, int]:
    """How many values occur more than once, and how many of these on one side of the border only."""
    order = np.argsort(both, kind="stable")
    ranked = both[order]
    finite = np.isfinite(ranked)
    ranked, first = ranked[finite], order[finite] < border
    if ranked.size < 2:
        return 0, 0
    ends = np.append(np.flatnonzero(np.diff(ranked)), ranked.size - 1)
    starts = np.append(0, ends[:-1] + 1)
    times = ends - starts + 1
    inside = np.add.reduceat(first.astype(np.int64), starts)
    again = times > 1
    return int(again.sum()), int((again & ((inside == 0) | (inside == times))).sum())


def _gap(first: FloatArray, second: FloatArray) -> float:
    """The largest distance of two samples' distribution functions; NaN counts as the largest value."""
    one, two = np.sort(first), np.sort(second)
    both = np.concatenate([one, two])
    steps = [np.searchsorted(part, both, side="right") / part.size for part in (one, two)]
    return float(np.abs(steps[0] - steps[1]).max())
