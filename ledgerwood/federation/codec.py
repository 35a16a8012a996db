"""Messages of a federation as bytes: a closed set of values, and no code.

A client reads what a server sends. Pickled bytes could run anything at the client, so that msgpack carries plain
values, arrays, events, and frozen dataclasses of this library, each made by its own constructor, with its own checks.
Nothing else is read. docs/explanation/federation.md#federation-messages.
"""

import dataclasses
import functools
import hashlib
import json
import math
import pkgutil
from collections.abc import Sequence
from contextvars import ContextVar
from importlib import import_module
from typing import Any, final

import msgpack
import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, PrivacyUnit
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.events.serial import from_json, to_json
from ledgerwood.curator.queries.bins import CandidateBins
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.errors import BadMessage, PrivacyError

_ARRAY, _VALUE, _EVENT, _NAME, _SHARED, _LARGE = range(1, 7)
_ROOMS = ("ledgerwood.curator.queries", "ledgerwood.mechanisms", "ledgerwood.secure_aggregation")
_MODULES = (
    "ledgerwood.ensemble",
    "ledgerwood.feature_cells",
    "ledgerwood.schema.declared",
    "ledgerwood.schema.features",
    "ledgerwood.schema.dates",
    "ledgerwood.schema.opens",
    "ledgerwood.curator.inputs.typed_columns",
    "ledgerwood.curator.places.federated_rows",
    "ledgerwood.federation.messages",
)
_DEPTH: ContextVar[int] = ContextVar("depth of values within a message", default=0)
_MOST_DEPTH = 32
"""Of values within values: each level takes some kilobytes of the stack, in code that cannot be interrupted."""
_REPEATED = frozenset({Ensemble, Tree, TreeStructure, SplitTests, CandidateBins})
"""Public values that many questions hold, and that evaluators know again by their identity."""
_NAMES = {f"{kind.__name__}.{each.name}": each for kind in (Adjacency, PrivacyUnit) for each in kind}
_DTYPES = frozenset("biuf")
_NAME_BYTES = 128
MOST_BYTES = 1 << 30
"""Of a message."""


@functools.cache
def value_kinds() -> dict[str, type]:
    """The dataclasses that travel, by their names: those of the rooms of queries, mechanisms and messages.

    `DeclaredStatistic` is none of them: it holds a function, which is code from outside.
    """
    names = list(_MODULES)
    for room in _ROOMS:
        package = import_module(room)
        names += [room, *(each.name for each in pkgutil.walk_packages(package.__path__, f"{room}."))]
    found: dict[str, type] = {}
    for name in names:
        module = import_module(name)
        for kind in vars(module).values():
            if not isinstance(kind, type) or not dataclasses.is_dataclass(kind) or kind.__module__ != name:
                continue
            if kind.__name__.startswith("_"):
                continue
            if found.setdefault(kind.__name__, kind) is not kind:
                raise BadMessage(f"two classes of messages are called {kind.__name__}")
    found.pop("DeclaredStatistic", None)
    return found


@final
class RepeatedValues:
    """The repeated values of one session, as its sender numbers them: in the order in which messages hold them."""

    __slots__ = ("_kept", "_numbers", "digest", "packed")

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []  # an id is a value's own only as long as that lives
        self.packed: list[bytes] = []
        self.digest = bytes(32)
        """Of all values so far, in their order; see `ReadValues`."""

    def number(self, value: object) -> int:
        """The value's number; a new value is packed first, after the values inside of it."""
        known = self._numbers.get(id(value))
        if known is None:
            packed = pack(value, self, outermost=value)
            known = self._numbers[id(value)] = len(self.packed)
            self._kept.append(value)
            self.packed.append(packed)
            self.digest = _chained(self.digest, packed)
        return known


@final
class ReadValues:
    """The repeated values of a session, as a client has them."""

    __slots__ = ("_values", "digest")

    def __init__(self) -> None:
        self._values: list[object] = []
        self.digest = bytes(32)
        """Of all values that were learnt, in their order."""

    def __len__(self) -> int:
        return len(self._values)

    def learn(self, known: int, news: Sequence[bytes]) -> bool:
        """Take over what is new, after the values that came before it; returns whether none of those is missing."""
        if known > len(self._values):
            return False
        for packed in news[len(self._values) - known :]:
            self._values.append(unpack(packed, self))
            self.digest = _chained(self.digest, packed)
        return True

    def value(self, number: int) -> object:
        """The value of a number.

        Raises:
            BadMessage: there is none.
        """
        if not 0 <= number < len(self._values):
            raise BadMessage(f"repeated value {number} is not known: there are {len(self._values)}")
        return self._values[number]


def _chained(digest: bytes, packed: bytes) -> bytes:
    return hashlib.sha256(digest + packed).digest()


def pack(value: object, repeated: RepeatedValues | None = None, *, outermost: object = None) -> bytes:
    """The value as bytes.

    Args:
        value: plain, an array, an event, or a dataclass of `value_kinds`, with such values inside.
        repeated: of the session; None where every value is to be written in full.
        outermost: a repeated value that is written in full itself.

    Raises:
        BadMessage: another value.
    """

    def other(each: Any) -> Any:
        if repeated is not None and type(each) in _REPEATED and each is not outermost:
            return msgpack.ExtType(_SHARED, msgpack.packb(repeated.number(each)))
        return _extension(each, lambda inner: pack(inner, repeated, outermost=outermost))

    try:
        packed: bytes = msgpack.packb(value, default=other, strict_types=True)
    except (TypeError, OverflowError, ValueError) as error:
        if isinstance(error, PrivacyError):
            raise
        raise BadMessage(f"{type(value).__name__} does not travel: {error}") from None
    return packed


def _extension(each: Any, packed: Any) -> Any:
    kind = type(each)
    if kind is tuple:
        return list(each)
    if kind is int:  # beyond 64 bits
        return msgpack.ExtType(_LARGE, each.to_bytes(1 + each.bit_length() // 8, "little", signed=True))
    if isinstance(each, np.generic):
        return each.item()
    if kind is np.ndarray and each.dtype.kind in _DTYPES:
        own = np.ascontiguousarray(each)
        return msgpack.ExtType(_ARRAY, msgpack.packb([own.dtype.str, list(each.shape)]) + own.tobytes())
    if isinstance(each, Event):
        return msgpack.ExtType(_EVENT, json.dumps(to_json(each), separators=(",", ":")).encode())
    if isinstance(each, Adjacency | PrivacyUnit):
        return msgpack.ExtType(_NAME, f"{kind.__name__}.{each.name}".encode())
    if value_kinds().get(kind.__name__) is kind:
        values = [getattr(each, name) for name in _names_of(value_kinds()[kind.__name__])]
        return msgpack.ExtType(_VALUE, packed([kind.__name__, *values]))
    hint = (
        ": its function is code, which clients do not take from a server"
        if kind.__name__ == "DeclaredStatistic"
        else ""
    )
    raise BadMessage(f"{kind.__name__} does not travel in a federation{hint}")


@functools.cache
def _names_of(kind: type) -> tuple[str, ...]:
    """The fields of a message's class that travel: those that its constructor takes."""
    return tuple(each.name for each in dataclasses.fields(kind) if each.init)


def unpack(packed: bytes, known: ReadValues | None = None) -> Any:
    """The inverse of `pack`.

    Raises:
        BadMessage: bytes that are none of these values, or a value that its own constructor refuses.
    """
    if len(packed) > MOST_BYTES:
        raise BadMessage(f"a message of {len(packed)} bytes is longer than {MOST_BYTES}")

    depth = _DEPTH.get()
    if depth >= _MOST_DEPTH:
        raise BadMessage(f"values within values, more than {_MOST_DEPTH} deep")

    def extension(code: int, data: bytes) -> Any:
        return _read(code, data, known)

    token = _DEPTH.set(depth + 1)
    try:
        return msgpack.unpackb(packed, ext_hook=extension, use_list=False, strict_map_key=False)
    except BadMessage:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a foreign message makes of a constructor
        problem = f"{type(error).__name__}: {error}"
    finally:
        _DEPTH.reset(token)
    raise BadMessage(f"bytes that are no message of a federation ({problem[:200]})")


def kind_in(packed: bytes) -> str:
    """The name of the class of a packed value, without a look at its fields; empty for whatever else it is."""
    try:
        start = msgpack.unpackb(packed, ext_hook=lambda code, data: data[:_NAME_BYTES] if code == _VALUE else b"")
        header = msgpack.Unpacker()
        header.feed(start)
        header.read_array_header()
        name = header.unpack()
    except Exception:  # noqa: BLE001  # whatever foreign bytes make of a parser: they are no such value
        return ""
    return name if isinstance(name, str) else ""


def _read(code: int, data: bytes, known: ReadValues | None) -> Any:
    match code:
        case 1:
            header = msgpack.Unpacker(use_list=False)
            header.feed(data[:512])
            dtype, shape = header.unpack()
            kind = np.dtype(str(dtype))
            if kind.kind not in _DTYPES or any(type(size) is not int or size < 0 for size in shape):
                raise BadMessage(f"an array of {dtype} {shape} does not travel")
            body = memoryview(data)[header.tell() :]
            if len(body) != kind.itemsize * math.prod(shape):
                raise BadMessage(f"an array of {dtype} {shape} has {len(body)} bytes")
            return np.frombuffer(body, dtype=kind).reshape(shape).copy()
        case 2:
            name, *values = unpack(data, known)
            kind_of = value_kinds().get(name)
            if kind_of is None:
                raise BadMessage(f"{name!r} does not travel in a federation")
            names = _names_of(kind_of)
            if len(names) != len(values):
                raise BadMessage(f"{name} has {len(names)} fields, and the message {len(values)}")
            return kind_of(**dict(zip(names, values, strict=True)))
        case 3:
            return from_json(json.loads(data))
        case 4:
            return _NAMES[data.decode()]
        case 5:
            if known is None:
                raise BadMessage("a repeated value outside of a session")
            return known.value(msgpack.unpackb(data))
        case 6:
            return int.from_bytes(data, "little", signed=True)
    raise BadMessage(f"kind {code} of values is not known")
