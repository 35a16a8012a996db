"""Start the dashboard's server."""

import ipaddress
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from ledgerwood.dashboard.app import create_app
from ledgerwood.dashboard.models import Models
from ledgerwood.dashboard.security import TOKEN_VARIABLE, TokenGate, allowed_hosts
from ledgerwood.dashboard.shelf import Shelf
from ledgerwood.dashboard.sources import sources_at
from ledgerwood.dashboard.verifying import ProcessVerifier
from ledgerwood.errors import InvalidParameter

_CONNECTIONS = 128
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def serve(
    places: Sequence[str],
    *,
    host: str,
    port: int,
    names: Sequence[str],
    models: Path | None,
    told: Callable[[str], None],
    ready: Callable[[str, str | None], None],
) -> None:
    """Serve until interrupted.

    Args:
        places: ledger files, folders of them, and URLs of databases.
        host: the address to listen at; beyond loopback, even reading needs the token.
        port: 0 takes a free one.
        names: further names by which browsers reach the server, as behind a proxy.
        models: a folder with saved models.
        told: is called with each line for who started it.
        ready: is called with the address and the token that was drawn, once the port is taken.

    Raises:
        InvalidParameter: a place, a folder or a token that cannot be.
        OSError: the port is taken.
    """
    loopback = is_loopback(host)
    if not loopback and not names and _is_any(host):
        raise InvalidParameter(
            f"host={host!r} listens at every address: name the server as browsers will, with --name, for example "
            "--name budget.example.org (any other name is refused)"
        )
    gate = TokenGate(os.environ.get(TOKEN_VARIABLE) or None)
    found = Models(models)
    sources = sources_at(places)
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise OSError(
            error.errno, f"port {port} of {host} cannot be used ({error.strerror}): choose another, with --port"
        ) from error
    with listener:
        port = listener.getsockname()[1]
        known = _LOOPBACK if loopback else ()
        hosts = allowed_hosts([host, *known, *names], port)
        app = create_app(Shelf(sources, ProcessVerifier()), found, gate, hosts=hosts, port=port, locked=not loopback)
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{port}/"
        told(f"The dashboard is at {address} until you press Ctrl-C. It changes nothing by itself.")
        if gate.drawn is not None:
            told(f"To verify again or to open a ledger, log in with this token: {gate.drawn}")
        else:
            told(f"To verify again or to open a ledger, log in with the token in {TOKEN_VARIABLE}.")
        if not loopback:
            told(
                "It listens beyond this machine: reading needs the token, too. The connection is not encrypted; put a "
                "proxy with TLS before it, or use an SSH tunnel to a dashboard on loopback."
            )
        ready(address, gate.drawn)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, proxy_headers=False, ws="none",
            limit_concurrency=_CONNECTIONS, timeout_keep_alive=15, timeout_graceful_shutdown=3, lifespan="on",
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listener])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host
