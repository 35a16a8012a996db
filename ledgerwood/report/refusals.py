"""How the commands fail: one line of standard error and exit code 1; and what a ledger's verdict ends with."""

import functools
from collections.abc import Callable
from typing import Literal, ParamSpec

import typer
from rich.console import Console

from ledgerwood.errors import PrivacyError

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
            command(*args, **kwargs)
        except ModuleNotFoundError as missing:
            extra = "sql" if missing.name in {"sqlalchemy", "psycopg"} else "trainers"
            _fail(f"this command needs {missing.name}: pip install 'ledgerwood[{extra}]'", missing)
        except ImportError as missing:
            _fail(str(missing), missing)
        except (PrivacyError, OSError) as refusal:
            _fail(f"{type(refusal).__name__}: {refusal}", refusal)

    return guarded


def leave(verdict: Literal["refuted", "unconfirmed", "confirmed"], *, allow_unconfirmed: bool) -> None:
    """End a command by what was found of a ledger: exit code 3 where it is refuted, 4 where it is not confirmed."""
    if verdict == "refuted":
        raise typer.Exit(REFUTED)
    if verdict == "unconfirmed" and not allow_unconfirmed:
        raise typer.Exit(UNCONFIRMED)


def _fail(message: str, cause: Exception) -> None:
    Console(stderr=True, soft_wrap=True).print(message, style="red", markup=False, highlight=False)
    raise typer.Exit(1) from cause
