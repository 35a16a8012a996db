"""How the commands fail: one line of standard error and exit code 1."""

import functools
import re
from collections.abc import Callable, Mapping
from typing import ParamSpec

import typer
from rich.console import Console

from ledgerwood.errors import PrivacyError

P = ParamSpec("P")


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
            _fail(f"{type(refusal).__name__}: {_as_options(str(refusal), kwargs)}", refusal)

    return guarded


_BY_OPTION = {"count": "steps"}
"""What the library calls otherwise than the option that sets it."""


def _as_options(message: str, options: Mapping[str, object]) -> str:
    """The message with the names of parameters as options of this command."""
    for name in sorted({*options, *(own for own, option in _BY_OPTION.items() if option in options)}):
        option = _BY_OPTION.get(name, name).replace("_", "-")
        message = re.sub(rf"(?<![\w-]){name}=(?!=)", f"--{option}=", message)
    return message


def _fail(message: str, cause: Exception) -> None:
    Console(stderr=True, soft_wrap=True).print(message, style="red", markup=False, highlight=False)
    raise typer.Exit(1) from cause
