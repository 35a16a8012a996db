"""A PostgreSQL server of one's own, on loopback, in a temporary folder, for tests and benchmarks."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.ports import held_port

_TOOLS = ("initdb", "postgres", "pg_ctl")
_PATIENCE = 300
"""Seconds for each step; a machine whose disk is busy needs some twenty for the files of a new cluster."""


def binaries() -> Path | None:
    """The folder of the newest server that is installed, None without one."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    path = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    for folder in (*debian, *path):
        if all((folder / tool).is_file() for tool in _TOOLS):
            return folder
    return None


@contextlib.contextmanager
def server(folder_of_tools: Path) -> Iterator[str]:
    """Start a new cluster, give the URL of its database, stop it and remove its files.

    The server refuses to run as root; root starts it as `postgres`, or as `nobody`.
    """
    folder = Path(tempfile.mkdtemp(prefix="ledger-pg-"))
    user = _other_user()
    if user is not None:
        shutil.chown(folder, user)
    data, held = folder / "data", held_port()
    port = held.getsockname()[1]

    def run(tool: str, *arguments: str) -> None:
        done = subprocess.run(
            [folder_of_tools / tool, *arguments], user=user, cwd=folder, capture_output=True, text=True,
            timeout=_PATIENCE, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            log = folder / "log"
            said = log.read_text() if log.exists() else ""
            raise RuntimeError(f"{tool} failed: {done.stdout}{done.stderr}{said}")

    try:
        run("initdb", "-D", str(data), "-U", "ledger", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
        wait = ("-w", "-t", str(_PATIENCE - 30))
        run("pg_ctl", "-D", str(data), "-l", str(folder / "log"), "-o", options, *wait, "start")
        try:
            yield f"postgresql+psycopg://ledger@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        held.close()
        shutil.rmtree(folder, ignore_errors=True)


def _other_user() -> str | None:
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)
