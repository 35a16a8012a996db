"""Checkpoints as a stranger reads them: where the last one is, and whether what it states holds together.

A checkpoint states what the entries before it amount to. Where they are there, the verifier adds them up and compares;
where they are not, only what the checkpoint says of itself can be looked at (docs/explanation/ledger.md#checkpoints).
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from ledgerwood.verification.ledgers.filters import Amounts, Rule

KEYS = {
    "opening", "analysts", "spent", "by_analyst", "draws", "checkpoints", "randomness", "held",
}  # fmt: skip
_MARK = '"kind":"checkpoint"'  # in no other line: quotes in texts are escaped
_NAMES = {
    "basic": ("epsilon", "delta"), "whitehouse": ("epsilon_squared", "delta"), "gdp": ("mu_squared",),
    "zcdp": ("rho",), "renyi": ("divergence",),
}  # fmt: skip
_SUM = re.compile(r"[0-9]{1,1400}(/[0-9]{1,1400})?", re.ASCII)
_LOOK = 1 << 17  # bytes


def start_of(lines: list[str]) -> int:
    """The index that the first line must have: of a checkpoint the one that it states, of any other entry 0."""
    if not lines or _MARK not in lines[0]:
        return 0
    try:
        index = json.loads(lines[0])["index"]
    except (ValueError, KeyError, TypeError, RecursionError):  # no entry, as whoever reads it will say
        return 0
    return index if type(index) is int and index > 0 else 0


def opening_of(line: str) -> dict[str, Any]:
    """The record of the opening: the first line, or what a checkpoint says of it."""
    record: dict[str, Any] = json.loads(line)
    found: dict[str, Any] = record["opening"] if record["kind"] == "checkpoint" else record
    return found


def since_last(lines: list[str]) -> list[str]:
    """The lines from the last checkpoint on; none where there is no checkpoint."""
    for place in range(len(lines) - 1, -1, -1):
        if _MARK in lines[place]:
            return lines[place:]
    return []


def until_checkpoint(rows: Iterable[Any]) -> list[Any]:
    """Rows with lines, from the last one back to that of a checkpoint, in the order of the ledger; else none."""
    found = []
    for row in rows:
        found.append(row)
        if _MARK in row.line:
            return found[::-1]
    return []


def tail_of(path: Path) -> bytes:
    """A file from the line of its last checkpoint on, read from its end; empty where there is no checkpoint.

    Raises:
        OSError: it cannot be read.
    """
    mark = _MARK.encode()
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        for start in _starts(size):
            file.seek(start)
            data = file.read(size - start)
            place = data.rfind(mark)
            line = data.rfind(b"\n", 0, place) + 1 if place >= 0 else 0
            if place >= 0 and (line or not start):
                return data[line:]
    return b""


def _starts(size: int) -> Iterator[int]:
    look = _LOOK
    while look < size:
        yield size - look
        look *= 2
    yield 0


def stated(rule: Rule, grants: int, amounts: Amounts) -> dict[str, object]:
    """The sums of a number of grants, as a checkpoint states them."""
    return {"grants": grants} | {name: str(amount) for name, amount in zip(_NAMES[rule.name], amounts, strict=False)}


def sums(rule: Rule, record: Any) -> tuple[int, Amounts]:
    """The number of grants and the amounts that a checkpoint states.

    Raises:
        ValueError: other sums than the filter's, not in lowest terms, or an amount without a grant.
    """
    names = _NAMES[rule.name]
    _require(isinstance(record, dict) and set(record) == {"grants", *names}, "the sums are not the filter's")
    number = count(record["grants"])
    found = []
    for name in names:
        text = record[name]
        _require(isinstance(text, str) and _SUM.fullmatch(text) is not None, f"no sum {text!r}")
        found.append(Fraction(text))
        _require(str(found[-1]) == text, f"the sum {text!r} is not in lowest terms")
    _require(number > 0 or not any(found), "an amount without a grant")
    return number, (found[0], found[1] if len(found) > 1 else Fraction())


def count(value: Any) -> int:
    """A whole number from 0 on.

    Raises:
        ValueError: it is none.
    """
    _require(type(value) is int and value >= 0, f"no number of entries: {value!r}")
    return int(value)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
