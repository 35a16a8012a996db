"""Federations: clients keep their rows, and a server trains on sums that no single client can be told from."""

from ledgerwood import _extras

try:
    from ledgerwood.federation.flower.apps import client_app as client_app
    from ledgerwood.federation.flower.apps import server_app as server_app
    from ledgerwood.federation.owners.service import OwnerSocket as OwnerSocket
    from ledgerwood.federation.owners.service import owner_of as owner_of
    from ledgerwood.federation.owners.service import serve_owner as serve_owner
    from ledgerwood.federation.run import federate as federate
    from ledgerwood.federation.streams import FederatedStream as FederatedStream
    from ledgerwood.federation.streams import OwnersPartialFit as OwnersPartialFit
except ModuleNotFoundError as _missing:  # each name says which extra it needs
    __getattr__ = _extras.absent(__name__, _missing)

__all__ = _extras.own_names(vars())  # noqa: PLE0605
