"""How the commands fail, and what they warn of: one line of standard error each, and exit code 1 for a
failure; and what a ledger's verdict ends with.
"""

import functools
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, ParamSpec

import typer
from rich.console import Console

from ledgerwood.errors import PrivacyError, PrivacyWarning

P = ParamSpec("P")

REFUTED = 3
"""Exit code where a claim, or a ledger's charge, is refuted."""
UNCONFIRMED = 4
"""Exit code where a ledger's charge could not be confirmed."""


def refusals(command: Callable[P, None]) -> Callable[P, None]:
    """Turn what the library refuses, and a file that cannot be used, into one line of standard error, exit code 1."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with _cautions():
                command(*args, **kwargs)
        except ModuleNotFoundError as missing:
            extra = "sql" if missing.name in {"sqlalchemy", "psycopg"} else "trainers"
            _fail(f"this command needs {missing.name}: pip install 'ledgerwood[{extra}]'", missing)
        except ImportError as missing:
            _fail(str(missing), missing)
        except (PrivacyError, OSError) as refusal:
            _fail(f"{type(refusal).__name__}: {_as_options(str(refusal), kwargs)}", refusal)

    return guarded


@contextmanager
def _cautions() -> Iterator[None]:
    """Print every `PrivacyWarning` as a line of standard error, whatever filters there are; no other warning."""
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


_BY_OPTION = {"count": "steps"}
"""What the library calls otherwise than the option that sets it."""


def _as_options(message: str, options: Mapping[str, object]) -> str:
    """The message with the names of parameters as options of this command, and with commands for functions."""
    message = message.replace("schema.check(X, y)", "`ledgerwood schema check`")
    for name in sorted({*options, *(own for own, option in _BY_OPTION.items() if option in options)}):
        option = _BY_OPTION.get(name, name).replace("_", "-")
        message = re.sub(rf"(?<![\w-]){name}=(?!=)", f"--{option}=", message)
    return message


def leave(verdict: Literal["refuted", "unconfirmed", "confirmed"], *, allow_unconfirmed: bool) -> None:
    """End a command by what was found of a ledger: exit code 3 where it is refuted, 4 where it is not confirmed."""
    if verdict == "refuted":
        raise typer.Exit(REFUTED)
    if verdict == "unconfirmed" and not allow_unconfirmed:
        raise typer.Exit(UNCONFIRMED)


def _fail(message: str, cause: Exception) -> None:
    Console(stderr=True, soft_wrap=True).print(message, style="red", markup=False, highlight=False)
    raise typer.Exit(1) from cause
