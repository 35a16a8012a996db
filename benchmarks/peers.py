"""Peers run live, each in a virtual environment of its own, made on first use."""

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / ".peers"


def run(name: str, requirements: tuple[str, ...], script: str) -> Any | None:
    """What a script prints as JSON on its last line, in the peer's environment; None where it cannot be installed."""
    python = FOLDER / name / "bin" / "python"
    if not python.exists():
        venv.create(FOLDER / name, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *requirements]
        if subprocess.run(install, check=False, capture_output=True).returncode != 0:
            python.unlink()
            print(f"{name} cannot be installed here: its column stays empty", file=sys.stderr)
            return None
    output = subprocess.run([str(python), "-W", "ignore", "-c", script], check=True, capture_output=True, text=True)
    return json.loads(output.stdout.strip().splitlines()[-1])
