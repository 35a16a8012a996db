"""Tripwires: arrays that raise an error when a module reads them that must not.

A privacy boundary is a promise about modules: these may read rows, and the others see what was released. Data that ask
who is reading them put it to the test. docs/how-to/test-your-mechanism.md shows it.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.errors import InvalidParameter

_PUBLIC = frozenset({"dtype", "flags", "itemsize", "nbytes", "ndim", "shape", "size", "strides"})
"""Attributes of an array that say nothing of its values."""
_READING = frozenset({"__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__buffer__"})
_FREE_FUNCTIONS = (np.shape, np.ndim, np.size)


class RowsRead(AssertionError):
    """A module has read rows that it must not read."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Watch:
    """Who may read, and who has read.

    Args:
        package: whose modules are watched.
        allowed: those that may read, with all that is below them.
        log: the watched modules that have read, in order; it grows.
    """

    package: str
    allowed: tuple[str, ...]
    log: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Raise if the innermost watched module on the stack is not allowed; all others are let through.

        Raises:
            RowsRead: it is not.
        """
        module = self._innermost()
        if module is None:
            return
        self.log.append(module)
        if not any(_below(module, name) for name in self.allowed):
            raise RowsRead(f"{module} has read rows; only {', '.join(self.allowed)} may")

    def _innermost(self) -> str | None:
        """The watched module that asked, however many libraries lie between."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            name = frame.f_globals.get("__name__", "")
            if name != __name__ and _below(name, self.package):
                return str(name)
            frame = frame.f_back
        return None


def _below(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


@final
class TripwireArray(np.ndarray[Any, Any]):
    """An array whose values are watched; its shape and dtype are free. Views and copies are watched, too.

    What numpy's own code takes without a word is not seen: `np.asarray` makes a plain array of it. See `TripwireTable`.
    """

    _watch: Watch | None = None

    def __array_finalize__(self, parent: Any) -> None:
        if isinstance(parent, TripwireArray):
            self._watch = parent._watch
            self._check()

    def __getattribute__(self, name: str) -> Any:
        if (not name.startswith("_") and name not in _PUBLIC) or name in _READING:
            object.__getattribute__(self, "_check")()  # tolist, item, sum, flat, data, view, ...
        return object.__getattribute__(self, name)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:  # numpy's own signature
        self._check()
        return getattr(ufunc, method)(*map(_plain, inputs), **{key: _plain(value) for key, value in named.items()})

    def __array_function__(self, function: Callable[..., Any], kinds: Any, arguments: Any, named: Any) -> Any:
        if function not in _FREE_FUNCTIONS:
            self._check()
        return function(*map(_plain, arguments), **{key: _plain(value) for key, value in named.items()})

    def __getitem__(self, index: Any) -> Any:
        self._check()
        return _plain(self)[index]

    def __iter__(self) -> Iterator[Any]:
        self._check()
        return iter(_plain(self))

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> NDArray[Any]:  # type: ignore[override]
        self._check()
        return np.array(_plain(self), dtype=dtype)

    def __contains__(self, value: object) -> bool:
        self._check()
        return value in _plain(self)

    def __bool__(self) -> bool:
        self._check()
        return bool(_plain(self))

    def __float__(self) -> float:
        self._check()
        return float(_plain(self))

    def __int__(self) -> int:
        self._check()
        return int(_plain(self))

    def __index__(self) -> int:
        self._check()
        return int(_plain(self).__index__())

    def _check(self) -> None:
        if self._watch is not None:
            self._watch.check()


def _plain(value: Any) -> Any:
    """The array without its guard; of tuples and lists, that of each member."""
    if isinstance(value, TripwireArray):
        return np.ndarray.view(value, np.ndarray)
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return value


@final
class TripwireTable:
    """No array at all, but something that becomes one: `np.asarray` cannot pass it by, as it does for a subclass.

    It has a shape, a dtype and a length; its values come by index, by iteration, or as an array.
    """

    def __init__(self, values: NDArray[Any], watch: Watch) -> None:
        self._values, self._watch = values, watch

    @property
    def shape(self) -> tuple[int, ...]:
        """The same as for an array."""
        return self._values.shape

    @property
    def dtype(self) -> Any:
        """The same as for an array."""
        return self._values.dtype

    @property
    def ndim(self) -> int:
        """The same as for an array."""
        return self._values.ndim

    def __len__(self) -> int:
        return len(self._values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        self._watch.check()
        return np.array(self._values, dtype=dtype)

    def __getitem__(self, index: Any) -> Any:
        self._watch.check()
        return self._values[index]

    def __iter__(self) -> Iterator[Any]:
        self._watch.check()
        return iter(self._values)


def tripwire(
    array: NDArray[Any],
    *,
    allowed: Sequence[str] | str = ("ledgerwood.curator",),
    package: str | None = None,
    kind: Literal["array", "table"] = "array",
    log: list[str] | None = None,
) -> Any:
    """Guard an array: `RowsRead` is raised when a watched module reads a value that it must not read.

    Who reads is the innermost module of the watched package on the stack: what numpy or scikit-learn do is done by
    whoever called them. Modules of no watched package (the test itself) read freely.

    Args:
        array: the values.
        allowed: modules that may read, with all that is below them.
        package: whose modules are watched; the top-level package of the first allowed module, if not given.
        kind: "array" is an array; "table" is none, so that no conversion passes it by. Test with both.
        log: a list to which the name of each watched module that reads is added.

    Raises:
        InvalidParameter: no array, no allowed module, another kind.
    """
    if not isinstance(array, np.ndarray):
        raise InvalidParameter(f"{_validate.kind_of(array)} is no array (unit: rows)")
    names = (allowed,) if isinstance(allowed, str) else tuple(allowed)
    if not names:
        raise InvalidParameter("allowed=() must name at least one module (unit: modules)")
    watch = Watch(package=package or names[0].partition(".")[0], allowed=names, log=[] if log is None else log)
    match kind:
        case "table":
            return TripwireTable(array, watch)
        case "array":
            guarded = np.ndarray.view(array, TripwireArray)
            guarded._watch = watch
            return guarded
    raise InvalidParameter(f"kind={kind!r} must be 'array' or 'table' (unit: name)")
