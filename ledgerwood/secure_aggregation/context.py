"""The names of one sum: session, plan, round and attempt. Every key and signature is bound to all of them."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import final

from ledgerwood import _validate
from ledgerwood.secure_aggregation.answers import MOST, members_digest, number_below

_LONGEST = 1 << 16
_TAG = b"ledgerwood secure sums 1"
"""Names the protocol and its version in every hash, key and signature."""


def framed(label: bytes, *parts: bytes) -> bytes:
    """Returns the parts as one text that no other label and no other parts have.

    It is the protocol's tag, then the label and each part behind its length in 8 bytes, big-endian.
    """
    return _TAG + b"".join(len(part).to_bytes(8, "big") + part for part in (label, *parts))


def number_bytes(*numbers: int) -> bytes:
    """Returns whole numbers in 0 .. 2**63 - 1, 8 bytes each, big-endian."""
    return b"".join(number.to_bytes(8, "big") for number in numbers)


def digest(label: bytes, *parts: bytes) -> bytes:
    """Returns SHA-256 of `framed(label, *parts)`, 32 bytes."""
    return hashlib.sha256(framed(label, *parts)).digest()


def exact_bytes(name: str, value: object, length: int) -> bytes:
    """Returns the value if it is `length` bytes; an error shows its type and length, and no byte of it."""
    if not isinstance(value, bytes):
        raise _validate.fail(f"type({name})", type(value), "bytes", "type")
    if len(value) != length:
        raise _validate.fail(f"len({name})", len(value), f"{length}", "bytes")
    return value


def has_bytes(value: object, length: int) -> bool:
    """Whether a value from elsewhere is a text of this many bytes."""
    return isinstance(value, bytes) and len(value) == length


def name_bytes(name: str, value: object) -> bytes:
    """Returns a public name: 1 to 65,536 bytes."""
    if not isinstance(value, bytes):
        raise _validate.fail(name, value, "bytes", "type")
    if not 1 <= len(value) <= _LONGEST:
        raise _validate.fail(f"len({name})", len(value), f"in 1 .. {_LONGEST}", "bytes")
    return value


def endorsement(bound: bytes, live: Collection[int], survivors: Collection[int]) -> tuple[bytes, bytes, bytes, bytes]:
    """Returns what an endorsement signs: label, context, live clients, survivors."""
    return b"endorse", bound, bytes.fromhex(members_digest(live)), bytes.fromhex(members_digest(survivors))


def listed(members: Collection[int]) -> str:
    """Returns client numbers for a message, the first ten of them."""
    shown = ", ".join(map(str, sorted(members)[:10])) or "nobody"
    return shown if len(members) <= 10 else f"{shown} and {len(members) - 10} more"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumContext:
    """Which sum is meant. All of it is public.

    Args:
        session: the name of the session, chosen by the server and used once.
        plan: the digest of the plan that both sides have agreed on.
        round: the number of the question in its session, from 1.
        attempt: the number of the attempt at this question, from 1.

    Raises:
        InvalidParameter: an empty name, or a number below 1.
    """

    session: bytes
    plan: bytes
    round: int
    attempt: int = 1

    def __post_init__(self) -> None:
        name_bytes("session", self.session)
        name_bytes("plan", self.plan)
        for name in ("round", "attempt"):
            object.__setattr__(self, name, number_below(name, getattr(self, name), MOST, f"{name}s", minimum=1))

    def digest(self, setting: bytes) -> bytes:
        """Returns what keys and signatures of this sum are bound to, 32 bytes.

        Args:
            setting: digest of terms and roster: two clients that were told different ones have no key in common.
        """
        return digest(b"context", self.session, self.plan, number_bytes(self.round, self.attempt), setting)

    def __str__(self) -> str:
        return f"round {self.round}, attempt {self.attempt}"
