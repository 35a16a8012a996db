"""A federation in one machine: Flower's simulation, on ray."""

import logging
import os
import pickle
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

from ledgerwood import _extras, _validate
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.errors import FederationRefused, OwnersLost
from ledgerwood.federation.agreed import is_setup
from ledgerwood.federation.flower.client import ClientMain, app_that_answers
from ledgerwood.federation.flower.server import ServerMain, app_that, fitted_by
from ledgerwood.federation.flower.transport import TIMEOUT, require_flower
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.owners.account import ClientAccount
from ledgerwood.federation.owners.own import OwnRows, identity_at
from ledgerwood.federation.owners.owner import Owner
from ledgerwood.federation.owners.policy import OwnerPolicy
from ledgerwood.federation.training import train
from ledgerwood.trainers.base.trainer import AbstractTrainer

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp

E = TypeVar("E", bound=AbstractTrainer)
_QUIET = {
    # nothing is reported to Flower's or ray's makers, and ray's start is not held up by looking for a cloud's metadata
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
}
_STARTS = 6
"""Of ray, before a simulation gives up: each gives ray's processes 30 s, which a busy machine exceeds."""


def simulate(server_app: "ServerApp", client_app: "ClientApp", n: int, *, cores: int | None = None) -> Any:
    """Run both apps in Flower's simulation: the server in this process, the clients in some processes of ray.

    A client's message goes to any of these processes, so that nothing of a client may last in a process alone. Ray is
    started for the run, on this machine only, and shut down at its end; nothing is reported to its or Flower's makers.

    Args:
        server_app: of `server_app`.
        client_app: of `client_app`. Functions and rows in it are pickled into every message.
        n: clients.
        cores: processes that answer for the clients; None takes one a core of this machine.

    Returns:
        The fitted estimator; None for a server's app that was made otherwise.

    Raises:
        ModuleNotFoundError: Flower or ray is not installed: pip install 'ledgerwood[federation]'.
        FederationRefused: this process uses ray already. Rows would go to that cluster.
        OwnersLost: Flower's simulation itself failed.
        Exception: what the server's app raised, as it was raised.
    """
    count = _validate.count("n", n, "clients")
    workers = _validate.count("cores", cores if cores is not None else os.cpu_count() or 1, "cores")
    with _environment(_QUIET):
        require_flower("simulate")
        from flwr.serverapp import ServerApp
        from flwr.simulation import run_simulation

        raised: list[BaseException] = []
        ended: list[bool] = []
        watched = ServerApp()

        def main(grid: "Grid", context: "Context") -> None:
            try:
                server_app(grid, context)
                ended.append(True)
            except BaseException as error:
                raised.append(error)
                raise

        watched.main()(main)
        logger = logging.getLogger("flwr")
        level = logger.level
        with _ray_of_this_machine(min(workers, count)):
            logger.setLevel(logging.ERROR)  # it calls this way of running it deprecated, with every run
            try:
                run_simulation(
                    server_app=watched,
                    client_app=client_app,
                    num_supernodes=count,
                    backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0}},
                )
            except Exception as error:
                if not raised:
                    raise OwnersLost(f"Flower's simulation failed ({type(error).__name__}): {error}") from error
            finally:
                logger.setLevel(level)
        if raised:
            raise raised[0]
        if not ended:
            raise OwnersLost("Flower's simulation ended before the server's app did")
        return fitted_by(server_app)


@contextmanager
def _ray_of_this_machine(processes: int) -> Iterator[None]:
    """A ray of its own, which Flower's simulation finds running, within a `with` block.

    Flower would start one itself, but it would follow the variable RAY_ADDRESS to a cluster, and take one that this
    process is connected to. Clients' rows are to stay on this machine. A start that fails is tried again: ray's
    processes wait for each other for a limited time, which a busy machine exceeds.
    """
    try:
        import ray
    except ModuleNotFoundError as missing:
        raise _extras.needed("ledgerwood.federation.simulate", missing) from missing
    if ray.is_initialized():
        raise FederationRefused(
            "this process uses ray already; a simulation starts a ray of its own, so that rows stay on this machine. "
            "Call ray.shutdown() before, or simulate without ray: federate(..., engine='process')"
        )
    # ray's processes import what this one can: they inherit this variable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (*sys.path, os.environ.get("PYTHONPATH"))))
    try:
        for attempt in range(1, _STARTS + 1):
            try:
                ray.init(
                    address="local", num_cpus=processes, include_dashboard=False, log_to_driver=False,
                    logging_level=logging.ERROR, configure_logging=False,
                )  # fmt: skip
                break
            except Exception as error:
                ray.shutdown()
                _end_processes_of(error)
                if attempt == _STARTS:
                    raise OwnersLost(f"ray did not start, {_STARTS} times ({type(error).__name__}): {error}") from error
        yield
    finally:
        ray.shutdown()


def _end_processes_of(error: BaseException) -> None:
    """End what a ray that failed to start has started: `ray.shutdown` does not know of it, and it would run on."""
    from ray._private.node import Node

    step = error.__traceback__
    while step is not None:
        starting = step.tb_frame.f_locals.get("self")
        if isinstance(starting, Node):
            starting.kill_all_processes(check_alive=False, wait=True)  # type: ignore[no-untyped-call]
            return
        step = step.tb_next


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables that the user has not set, within a `with` block: processes that start in it inherit them."""
    before = {name: os.environ.get(name) for name in (*values, "PYTHONPATH")}
    for name, value in values.items():
        os.environ.setdefault(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is not None:
                os.environ[name] = old
            else:
                os.environ.pop(name, None)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SpooledOwners:
    """The owners of a simulation, in a folder of this machine that only this user reads.

    ray's processes read them there: values in an app are pickled into each message.

    Args:
        folder: with a file and a key for each owner.
        policy: what each of them accepts.
    """

    folder: str
    policy: OwnerPolicy

    def spool(self, owners: Iterable[tuple[OwnRows, ClientAccount]]) -> None:
        """Write the owners' files, owner 0 first."""
        for number, owner in enumerate(owners):
            with (Path(self.folder) / f"{number}.owner").open("xb") as file:
                pickle.dump(owner, file, protocol=5)

    def __call__(self, context: "Context") -> Owner:
        """The owner of a node."""
        number = context.node_config["partition-id"]
        with (Path(self.folder) / f"{number}.owner").open("rb") as file:
            rows, account = pickle.load(file)
        identity = identity_at(Path(self.folder) / f"{number}.key")
        return Owner(lambda: rows, account=account, identity=identity, policy=self.policy)


def simulated(
    estimator: E,
    rows: Sequence[OwnRows],
    accounts: Sequence[ClientAccount],
    folder: Path,
    options: FederationOptions,
    policy: OwnerPolicy,
    *,
    ledger: Ledger | None,
    timeout: float = TIMEOUT,
) -> E:
    """Fit the estimator in Flower's simulation; what `federate` does with engine="flower".

    Args:
        estimator: as of `federate`.
        rows: of each client.
        accounts: of each client.
        folder: a temporary one, that only this user reads.
        options: what the server fixes.
        policy: what each client accepts.
        ledger: of the server.
        timeout: of an exchange, seconds.
    """
    require_flower("federate")
    owners = SpooledOwners(folder=str(folder), policy=policy)
    owners.spool(zip(rows, accounts, strict=True))
    server = app_that(
        ServerMain(
            train=lambda transport: train(estimator, transport, options, ledger=ledger),
            clients=len(rows),
            model=None,
            wait=TIMEOUT,
            timeout=timeout,
        )
    )
    client = app_that_answers(ClientMain(name=uuid.uuid4().hex, owner=owners, begins=is_setup))
    simulate(server, client, len(rows))
    return estimator
