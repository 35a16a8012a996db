"""The app of the server, for Flower: it waits for the owners, trains over them, and saves the model."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final
from weakref import WeakKeyDictionary

from ledgerwood import _validate
from ledgerwood.federation.flower.transport import FlowerTransport

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.serverapp import Grid, ServerApp


@final
@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ServerMain:
    """What a server's app does in one run.

    Args:
        train: fits over a transport, and returns the fitted estimator.
        clients: how many are waited for; None takes `clients` of the run's configuration.
        model: the file that the fitted estimator is saved to; None takes `model` of the run's configuration, if any.
        wait: for the clients to connect, seconds.
        timeout: of an exchange, seconds.
        least: how many of some number of clients suffice when `wait` is over; None: all of them.
        fitted: by the last run in this process.
    """

    train: Callable[[FlowerTransport], Any]
    clients: int | None
    model: Path | None
    wait: float
    timeout: float
    least: Callable[[int], int] | None = None
    fitted: Any = field(default=None, init=False)

    def __call__(self, grid: "Grid", context: "Context") -> None:
        """Run once; Flower calls it.

        Raises:
            InvalidParameter: the number of clients is given nowhere.
            OSError: the model could not be saved where told; nothing was spent.
            OwnersLost: the clients did not connect in time; nothing was spent.
        """
        configured = context.run_config
        clients = self.clients if self.clients is not None else configured.get("clients")
        if clients is None:
            raise _validate.fail("clients", clients, "given to server_app, or by flwr run -c 'clients=5'", "clients")
        place = self.model if self.model is not None else configured.get("model")
        model = None if place in (None, "") else Path(str(place))
        if model is not None:
            with tempfile.TemporaryFile(dir=model.parent):  # before anything is spent
                pass
        count = _validate.count("clients", clients, "clients")
        least = None if self.least is None else self.least(count)
        transport = FlowerTransport.connected(grid, count, least=least, wait=self.wait, timeout=self.timeout)
        self.fitted = self.train(transport)
        if model is not None:
            self.fitted.save(model)


_MAINS: "WeakKeyDictionary[ServerApp, ServerMain]" = WeakKeyDictionary()


def app_that(main: ServerMain) -> "ServerApp":
    """A Flower app for a server's main function."""
    from flwr.serverapp import ServerApp

    app = ServerApp()
    app.main()(main)
    _MAINS[app] = main
    return app


def fitted_by(app: "ServerApp") -> Any:
    """What the app's last run in this process has fitted; None for other apps."""
    main = _MAINS.get(app)
    return None if main is None else main.fitted
