"""Peers run live, each in a virtual environment of its own, made on first use."""

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / ".peers"


def environment(name: str, requirements: tuple[str, ...]) -> Path | None:
    """The peer's interpreter; None, said once, where it cannot be installed."""
    python = FOLDER / name / "bin" / "python"
    if not python.exists():
        venv.create(FOLDER / name, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *requirements]
        if subprocess.run(install, check=False, capture_output=True).returncode != 0:
            python.unlink()
            print(f"{name} cannot be installed here: its column stays empty", file=sys.stderr)
            return None
    return python


def run(name: str, requirements: tuple[str, ...], script: str | Path, given: Any = None) -> Any | None:
    """What a script prints as JSON on its last line, in the peer's environment; None where it cannot be installed.

    Args:
        name: the environment's name.
        requirements: what pip installs into it.
        script: Python code, or the path of a file.
        given: written to the script's standard input as JSON.
    """
    python = environment(name, requirements)
    if python is None:
        return None
    code = [str(script)] if isinstance(script, Path) else ["-c", script]
    command = [str(python), "-W", "ignore", *code]
    output = subprocess.run(command, check=True, capture_output=True, text=True, input=json.dumps(given))
    return json.loads(output.stdout.strip().splitlines()[-1])
