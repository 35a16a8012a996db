"""The parameters of an estimator, in words: read from the docstrings of its classes and of its plan's."""

import dataclasses
import inspect
import re
import typing
from dataclasses import dataclass
from typing import Any, get_args, get_origin

_ENTRY = re.compile(r"^(\w+(?:, \w+)*): (.*)$")
_REFERRED = "of the plan."
_NO_WORDS = re.compile(r"of the plan\.?|see the plan\.?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter: its name, the kinds of value that it takes, its default, and what its class says of it."""

    name: str
    kind: str
    default: str
    words: str


def parameters(estimator: type, plan: type) -> list[Parameter]:
    """All parameters of an estimator, those of its own system first.

    Args:
        estimator: a dataclass whose fields are its parameters.
        plan: the class of its plan, whose fields of the same name say what they mean.

    Raises:
        ValueError: a parameter of which no class says anything.
    """
    own, planned = described(estimator), described(plan)
    kinds = typing.get_type_hints(estimator)
    found, silent = [], []
    for field in dataclasses.fields(estimator):
        words = own.get(field.name, "")
        if not words or _NO_WORDS.fullmatch(words):
            words = planned.get(field.name, "")
        if not words:
            silent.append(field.name)
        default = "" if field.default is dataclasses.MISSING else repr(field.default)
        found.append(Parameter(name=field.name, kind=kind_of(kinds[field.name]), default=default, words=words))
    if silent:
        raise ValueError(f"{estimator.__name__}: no docstring says what these parameters are: {', '.join(silent)}")
    return found


def described(kind: type) -> dict[str, str]:
    """The section "Args" of a class and its bases, by name; the most derived class's words win."""
    found: dict[str, str] = {}
    for base in kind.__mro__:
        for name, words in _section(inspect.getdoc(base) if base.__module__.startswith("ledgerwood") else None, "Args"):
            found.setdefault(name, words)
    return found


def attributes(kind: type) -> dict[str, str]:
    """The section "Attributes" of a class and its bases, by name."""
    found: dict[str, str] = {}
    for base in kind.__mro__:
        doc = inspect.getdoc(base) if base.__module__.startswith("ledgerwood") else None
        for name, words in _section(doc, "Attributes"):
            found.setdefault(name, words)
    return found


def kind_of(hint: Any) -> str:
    """A type as a reader would write it: `float | None`, or the values of a closed set."""
    if hint is None or hint is type(None):
        return "None"
    if hint is Any:
        return "anything"
    if get_origin(hint) is typing.Literal:
        return " | ".join(repr(value) for value in get_args(hint))
    if get_origin(hint) is typing.Annotated:
        return kind_of(get_args(hint)[0])
    if get_args(hint) and get_origin(hint) in (typing.Union, type(int | str)):
        return " | ".join(kind_of(each) for each in get_args(hint))
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")


def _section(doc: str | None, title: str) -> list[tuple[str, str]]:
    """The entries of one section of a docstring; an entry for several names is one for each."""
    if doc is None or f"\n{title}:\n" not in f"\n{doc}":
        return []
    entries: list[tuple[str, str]] = []
    body = f"\n{doc}".split(f"\n{title}:\n", 1)[1]
    for line in body.splitlines():
        if line.strip() and not line.startswith(" "):
            break
        text = line[4:]
        if not text.strip():
            continue
        if text.startswith(" ") and entries:
            names, words = entries[-1]
            entries[-1] = names, f"{words} {text.strip()}"
        elif (match := _ENTRY.match(text)) is not None:
            entries.append((match[1], match[2]))
    return [(name, words) for names, words in _sentences(entries) for name in names.split(", ")]


def _sentences(entries: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A line may describe two names after each other ("n_features: of the schema. numeric_features: places")."""
    parted = []
    for names, words in entries:
        pieces = re.split(r"(?<=[.;]) (?=[a-z]+_\w+(?:, \w+)*: )", words)
        parted.append((names, pieces[0]))
        parted += [tuple(piece.split(": ", 1)) for piece in pieces[1:]]
    return parted
