"""How commands print a result, a two-column table for people or one JSON object for programs, and how they fail.

A failure and a warning are one line of standard error each; a failure ends with exit code 1, an unsound ledger with
that of its verdict.
"""

import functools
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, ParamSpec

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ledgerwood import _extras
from ledgerwood.accounting.ledger.entries import ON_TRUST
from ledgerwood.errors import BudgetExceeded, PrivacyError, PrivacyWarning
from ledgerwood.pages.values import Fact as Fact  # noqa: PLC0414 - what is printed belongs here
from ledgerwood.pages.values import finite, plain


def show(title: str, facts: Mapping[str, Fact], *, as_json: bool) -> None:
    """Print named facts, texts of several lines below the others.

    As JSON, infinity becomes the string "inf" (JSON has no such number).
    """
    if as_json:
        print_json(facts)
        return
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    texts = {name: value for name, value in facts.items() if isinstance(value, str) and "\n" in value}
    for name, value in facts.items():
        if name not in texts:
            table.add_row(name.replace("_", " "), escape(plain(value)))
    console = Console()
    console.print(table)
    for text in texts.values():
        console.print(escape(text), highlight=False)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    print(json.dumps(finite(value), indent=1, allow_nan=False))  # noqa: T201


P = ParamSpec("P")

REFUTED, UNCONFIRMED = 3, 4
EXIT_CODES = {
    0: "done",
    1: "refused or failed, with the reason on standard error; rows that do not fit a schema; an error not detected",
    2: "wrong usage",
    REFUTED: "an audit refuted a claim, or a verifier a ledger's charge",
    UNCONFIRMED: "a ledger's charge could not be confirmed",
}
"""What a command's exit code says. The manual's table and the program's help are made of it."""


def exit_codes() -> str:
    """The codes in one line."""
    return "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()) + "."


def refusals(command: Callable[P, None]) -> Callable[P, None]:
    """Turn what the library refuses, and a file that cannot be used, into one line of standard error, exit code 1."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with _cautions():
                command(*args, **kwargs)
        except ModuleNotFoundError as missing:
            _fail(str(_extras.needed("this command", missing)), missing)
        except ImportError as missing:
            _fail(str(missing), missing)
        except BrokenPipeError:  # whoever read the output has seen enough; click ends the program without a word
            raise
        except (PrivacyError, OSError) as refusal:
            told = "; ".join([str(refusal), *getattr(refusal, "__notes__", ())])
            if not isinstance(refusal, BudgetExceeded):  # which speaks of a ledger's epsilon, not of an option
                told = _as_options(told, kwargs)
            _fail(f"{type(refusal).__name__}: {told}", refusal)

    return guarded


@contextmanager
def _cautions() -> Iterator[None]:
    """Print every `PrivacyWarning` as a line of standard error, for any warning filters; no other warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyWarning)
        shown = warnings.showwarning
        told = Console(stderr=True, soft_wrap=True)

        def show(message: Warning | str, category: type[Warning], *place: Any, **named: Any) -> None:
            if issubclass(category, PrivacyWarning):
                told.print(f"warning: {message}", style="yellow", markup=False, highlight=False)
            else:
                shown(message, category, *place, **named)

        warnings.showwarning = show
        yield


_BY_OPTION = {"count": "steps", "key": "id", "n": "samples"}
"""Parameters whose name differs from the option that sets them."""


_WHOLE = (
    "this command needs the whole ledger, from its first entry on: name the file or database that has it. To go on "
    "from the checkpoint, on the word of whoever wrote it, spend from Python: ledgerwood.Ledger.open(PATH, "
    "from_checkpoint=True)"
)


def _as_options(message: str, options: Mapping[str, object]) -> str:
    """The message with the names of parameters as options of this command, and with commands for functions."""
    message = message.replace("schema.check(X, y)", "`ledgerwood schema check`")
    message = message.replace(ON_TRUST, _WHOLE)
    if "rows" in options:
        message = re.sub(r"(?<![\w-])X=(?!=)", "ROWS=", message)
    for name in sorted({*options, *(own for own, option in _BY_OPTION.items() if option in options or own in options)}):
        option = _BY_OPTION.get(name, name).replace("_", "-")
        if isinstance(options.get(name), bool):  # a flag, which takes no value
            message = re.sub(rf"(?<!--set )(?<![\w-]){name}=True\b", f"--{option}", message)
        message = re.sub(rf"(?<!--set )(?<![\w-]){name}=(?!=)", f"--{option}=", message)
    return message


def leave(verdict: Literal["refuted", "unconfirmed", "trusted", "confirmed"], *, allow_unconfirmed: bool) -> None:
    """End a command by what was found of a ledger: exit code 3 where it is refuted, 4 where it is not confirmed."""
    if verdict == "refuted":
        raise typer.Exit(REFUTED)
    if verdict in ("unconfirmed", "trusted") and not allow_unconfirmed:
        raise typer.Exit(UNCONFIRMED)


def _fail(message: str, cause: Exception) -> None:
    Console(stderr=True, soft_wrap=True).print(message, style="red", markup=False, highlight=False)
    raise typer.Exit(1) from cause
