"""How requests reach owners, and replies come back: whatever carries bytes."""

from collections.abc import Mapping, Sequence
from typing import Protocol, final

from ledgerwood import _validate
from ledgerwood.federation.owners.owner import Owner


class Transport(Protocol):
    """Carries bytes between a server and the owners of rows, who are numbered from 0."""

    @property
    def clients(self) -> tuple[int, ...]:
        """The numbers of all owners that there are."""

    @property
    def silent(self) -> Mapping[int, str]:
        """Why owners gave no reply in the last exchange, by number, as far as the transport knows."""

    def exchange(self, requests: Mapping[int, bytes], *, what: str) -> Mapping[int, bytes]:
        """Send a request to each of some owners, and return the replies of those that answered in time.

        Args:
            requests: by number of the owner.
            what: is asked, for logs.
        """


@final
class LocalTransport:
    """Owners in this process, asked one after another: for tests and small experiments.

    Args:
        owners: by number.
    """

    def __init__(self, owners: Sequence[Owner]) -> None:
        self._owners: tuple[Owner, ...] = _validate.items("owners", owners, "owners")

    @property
    def clients(self) -> tuple[int, ...]:
        """See `Transport`."""
        return tuple(range(len(self._owners)))

    @property
    def silent(self) -> Mapping[int, str]:
        """See `Transport`: all of them answer."""
        return {}

    def exchange(self, requests: Mapping[int, bytes], *, what: str) -> Mapping[int, bytes]:
        """See `Transport`."""
        return {number: self._owners[number].answer(request) for number, request in requests.items()}
