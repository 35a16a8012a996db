"""The connection to a Dask cluster: whose it is, who can listen to it, and how it breaks."""

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from ledgerwood import _extras, _validate
from ledgerwood.errors import PrivacyError


def client_of(client: Any) -> Any:
    """The client of the cluster: the given one, or the current one.

    Raises:
        InvalidParameter: there is none, or it is no client, or an asynchronous one.
        ModuleNotFoundError: Dask is not installed.
    """
    try:
        import distributed
    except ModuleNotFoundError as missing:
        raise _extras.needed("training on a Dask cluster", missing) from missing
    if client is None:
        try:
            return distributed.default_client()  # type: ignore[no-untyped-call]
        except ValueError:
            bound = "a distributed.Client, and there is no current one: make one, distributed.Client(...)"
    elif isinstance(client, distributed.Client):
        if not client.asynchronous:
            return client
        bound = "a synchronous distributed.Client: fit waits for its rounds"
    else:
        bound = "a distributed.Client, or None for the current one"
    raise _validate.fail("client", client, bound, "client")


def require_private(client: Any) -> None:
    """Refuse a cluster whose connections others can listen to: TLS, or this machine alone.

    Raises:
        PrivacyError: so they can; nothing was spent.
    """
    addresses = [client.scheduler.address, *client.scheduler_info(n_workers=-1)["workers"]]
    for address in addresses:
        place = urlsplit(address)
        if place.scheme in ("tls", "inproc", "wss") or _is_loopback(place.hostname):
            continue
        raise PrivacyError(
            f"the cluster speaks over {address}, which others can listen to: exact sums and the keys of the rows' "
            "coins would go over it. Use TLS (distributed.Security on scheduler, workers and client), or a cluster on "
            "this machine alone"
        )


def _is_loopback(host: str | None) -> bool:
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"


def killed_kinds() -> tuple[type[Exception], ...]:
    """The errors of a task whose workers died."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.client import FuturesCancelledError
    from distributed.comm.core import CommClosedError

    return (CancelledError, FuturesCancelledError, KilledWorker, CommClosedError)


def lost_kinds() -> tuple[type[Exception], ...]:
    """The errors of a client whose cluster is in trouble; where a task has one of the latter two it is its own."""
    return (*killed_kinds(), TimeoutError, OSError)
