"""An owner's own process: it holds the rows, the key and the ledger, and answers requests on a local socket.

In Flower the code of a client app comes from whoever starts the run. Rows that only another process can read are out of
that code's reach: the app hands requests on, and brings replies back. docs/how-to/deploy-a-federation.md.
"""

import os
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Protocol, final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget, PrivacyUnit
from ledgerwood.curator.places.federated_rows import NoiseBy
from ledgerwood.curator.queries.declared import DeclaredStatistic
from ledgerwood.errors import FederationRefused, OwnersLost
from ledgerwood.federation.owners.account import ClientAccount
from ledgerwood.federation.owners.own import OwnRows, identity_at
from ledgerwood.federation.owners.owner import Owner
from ledgerwood.federation.owners.policy import OwnerPolicy
from ledgerwood.schema import Schema
from ledgerwood.secure_aggregation import ClientRegistry

_LENGTH = struct.Struct(">Q")
_MOST_BYTES = 1 << 30
_SECONDS_TO_READ = 60.0


Rows = tuple[Any, ...]
Place = str | Path


class Answering(Protocol):
    """What answers requests: `Owner`."""

    def answer(self, request: bytes) -> bytes:
        """The reply to a request."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSocket:
    """The place of an owner's own process, for `client_app`.

    Args:
        path: of the Unix socket; None takes the node's configuration `owner`, as in
            `flower-supernode --node-config 'owner="/run/owner/socket"'`.
        timeout: for a reply, seconds.
    """

    path: str | None = None
    timeout: float = 3600.0

    def __post_init__(self) -> None:
        _validate.positive("timeout", self.timeout, "seconds")


@final
class _Forwarded:
    """Hands each request to the process behind a socket."""

    __slots__ = ("_path", "_timeout")

    def __init__(self, path: str, timeout: float) -> None:
        self._path, self._timeout = path, timeout

    def answer(self, request: bytes) -> bytes:
        """The reply of the process.

        Raises:
            OwnersLost: nobody listens, or nothing came back in time.
        """
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
                line.settimeout(self._timeout)
                line.connect(self._path)
                line.sendall(_LENGTH.pack(len(request)) + request)
                with line.makefile("rb") as replies:
                    return _read(replies)
        except OSError as error:
            raise OwnersLost(
                f"the owner's own process does not answer ({type(error).__name__}): start it with serve_owner, as a "
                "user that may read the rows, before the SuperNode"
            ) from error


def forwarded(place: OwnerSocket, configured: object) -> Answering:
    """What hands requests to an owner's own process.

    Args:
        place: of its socket.
        configured: the node's configuration `owner`, if there is one.

    Raises:
        InvalidParameter: no path is given in either.
    """
    path = place.path if place.path is not None else configured
    if not isinstance(path, str) or not path:
        raise _validate.fail("owner", path, "the path of a socket, in OwnerSocket(path=) or --node-config", "path")
    return _Forwarded(path, place.timeout)


def owner_of(
    rows: Rows | Callable[[], Rows],
    ledger: Place,
    *,
    key: Place | bytes,
    dataset: str | None = None,
    budget: Budget | None = None,
    unit: PrivacyUnit | None = None,
    schema: Schema | None = None,
    noise: NoiseBy | None = None,
    colluding: float = 0.0,
    allow_seed: bool = False,
    registry: ClientRegistry | None = None,
    statistics: Sequence[DeclaredStatistic] = (),
) -> Owner:
    """An owner of rows, for `serve_owner`.

    Args:
        rows: (X, y) or (X, y, sample_weight), or a function that returns them.
        ledger: the file of the owner's own ledger.
        key: the file of the owner's secret, made where there is none; or the secret, 32 bytes.
        dataset: name of the rows in the ledger, as in `Ledger.open`.
        budget: of a ledger that does not exist yet.
        unit: of a ledger that does not exist yet.
        schema: that the server's has to equal; None accepts any.
        noise: that the server has to use, "server" or "clients"; None accepts both.
        colluding: fraction of the owners that may pool what they know of their noise; see `OwnerPolicy`.
        allow_seed: whether seeded fits are answered, which protect nobody: for tests.
        registry: the public keys of all owners, for active sessions; see `OwnerPolicy`.
        statistics: from outside, whose functions this owner runs on its rows; see `OwnerPolicy`.

    Raises:
        InvalidParameter: a value of another type, or out of its bound.
    """
    policy = OwnerPolicy(
        schema=schema, noise=noise, colluding=colluding, allow_seed=allow_seed, registry=registry,
        statistics=_validate.items("statistics", statistics, "statistics"),
    )  # fmt: skip
    return owner_with(policy, rows, ClientAccount(ledger, dataset=dataset, budget=budget, unit=unit), key)


def owner_with(
    policy: OwnerPolicy, rows: Rows | Callable[[], Rows], account: ClientAccount, key: Place | bytes
) -> Owner:
    """An owner of rows.

    Args:
        policy: what it accepts.
        rows, key: as of `owner_of`.
        account: the owner's.
    """

    def own() -> OwnRows:
        found = rows() if callable(rows) else rows
        if not 2 <= len(found) <= 4:
            raise FederationRefused(
                "rows of an owner are (X, y), (X, y, sample_weight), or of a stream (X, y, None, keys); or a function "
                "that returns them"
            )
        weights, keys = (*found[2:], None, None)[:2]
        return OwnRows(X=found[0], y=found[1], sample_weight=weights, keys=keys)

    identity = key if isinstance(key, bytes) else identity_at(key)
    return Owner(own, account=account, identity=identity, policy=policy)


def serve_owner(owner: Answering, path: str | Path, *, mode: int = 0o600) -> None:
    """Answer requests on a Unix socket, one after another, until the process is stopped.

    Args:
        owner: what answers.
        path: of the socket; it must not be in use. Put it in a folder that only the owner can write to.
        mode: of the socket file: 0o660 lets the file's group connect, for a SuperNode that runs as another user.

    Raises:
        OSError: another process listens there, or the folder does not exist.
    """
    with serving_owner(owner, path, mode=mode) as thread:
        thread.join()


@contextmanager
def serving_owner(owner: Answering, path: str | Path, *, mode: int = 0o600) -> Iterator[threading.Thread]:
    """Answer requests on a Unix socket, in a thread, within a `with` block; for arguments see `serve_owner`."""
    place = Path(path)
    _require_free(place)

    class Handler(socketserver.StreamRequestHandler):
        timeout = _SECONDS_TO_READ

        def handle(self) -> None:
            # Who hangs up, or sends less than it said, gets no answer.
            with suppress(OSError):
                reply = owner.answer(_read(self.rfile))
                self.wfile.write(_LENGTH.pack(len(reply)) + reply)

    before = os.umask(0o177)  # the socket is nobody else's before its mode is set
    try:
        server = socketserver.UnixStreamServer(str(place), Handler)
    finally:
        os.umask(before)
    try:
        place.chmod(mode)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        yield thread
        server.shutdown()
        thread.join()
    finally:
        server.server_close()
        place.unlink(missing_ok=True)


def _require_free(place: Path) -> None:
    """Remove the socket file of a process that is gone.

    Raises:
        FileExistsError: a process listens there, or the file is no socket.
    """
    if not place.exists():
        return
    if not place.is_socket():
        raise FileExistsError(f"{place} is a file, not a socket: give another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(str(place))
        except ConnectionRefusedError:
            place.unlink()
            return
    raise FileExistsError(f"another process listens at {place}: stop it, or give another path")


def _read(file: BufferedIOBase) -> bytes:
    """One message: its length in 8 bytes, and as many bytes.

    Raises:
        ConnectionError: the other side hung up before, or announced more than 1 GiB.
    """
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise ConnectionAbortedError("hung up before a message")
    (length,) = _LENGTH.unpack(head)
    if length > _MOST_BYTES:
        raise ConnectionAbortedError(f"a message of {length} bytes, and {_MOST_BYTES} are the most")
    content = file.read(length)
    if len(content) < length:
        raise ConnectionAbortedError("hung up within a message")
    return content
