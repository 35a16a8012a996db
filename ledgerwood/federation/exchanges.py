"""Exchanges of one session: requests out, replies in, and why an owner gave none."""

from collections.abc import Callable, Mapping
from typing import TypeVar, final

from ledgerwood import _validate
from ledgerwood._uncopied import Uncopied
from ledgerwood.errors import BadMessage
from ledgerwood.federation.codec import unpack
from ledgerwood.federation.messages import NotTold, Ready, Refusal
from ledgerwood.federation.transport import Transport

R = TypeVar("R")
_NO_ANSWER = "no answer in time"


class OfOneSession(Uncopied):
    """A part of the server's side of one session, which is neither copied nor pickled.

    Owners answer each attempt at a round once, whoever asks, so that a copy gets no second sum out of a draw. But it
    would count rounds and repeated values for itself: the owners would refuse one of the two, at a later round.
    """

    __slots__ = ()

    def _uncopied(self) -> str:
        return (
            f"{_validate.kind_of(self)} cannot be copied or pickled: owners answer each round of a session once, and "
            "two objects would ask for the same ones; use the object itself, or begin another session, which pays again"
        )


@final
class Exchanges(OfOneSession):
    """Asks owners through a transport, and reads what they reply. Owners have numbers, by their places, from 0.

    Args:
        transport: reaches the owners.
    """

    __slots__ = ("_names", "_transport", "bytes_down", "bytes_up", "reasons", "setup", "silent")

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        # As the transport calls them.
        self._names: tuple[int, ...] = _validate.items("clients", transport.clients, "owners")
        self.bytes_up = self.bytes_down = 0
        self.reasons: dict[int, str] = {}
        self.silent: set[int] = set()
        """Who did not answer the last exchange at all."""
        self.setup: dict[int, bytes] = {}
        """What began the session, for processes that were not told."""

    @property
    def owners(self) -> int:
        """How many there are."""
        return len(self._names)

    def reason(self, owner: int) -> str:
        """Why an owner gave no reply."""
        return self.reasons.get(owner, _NO_ANSWER)

    def asked(
        self,
        requests: Mapping[int, bytes],
        kind: type[R],
        *,
        what: str,
        again: Callable[[int, int], bytes] | None = None,
    ) -> dict[int, R]:
        """The replies of that kind; who refused, failed or was silent is not among them, and `reasons` says why.

        An owner whose process was started again is told of the session, and asked once more.

        Args:
            requests: by number of the owner.
            kind: of reply.
            what: is asked, for logs.
            again: makes the request to an owner, from its number and the number of repeated values that it has; None:
                the request as it was.
        """
        found, untold = self._read(requests, kind, what)
        if untold:
            told, _ = self._read({owner: self.setup[owner] for owner in untold}, Ready, "setup")
            repeated = {
                owner: requests[owner] if again is None else again(owner, max(untold[owner], 0)) for owner in told
            }
            if repeated:
                found.update(self._read(repeated, kind, what)[0])
        return found

    def _read(self, requests: Mapping[int, bytes], kind: type[R], what: str) -> tuple[dict[int, R], dict[int, int]]:
        self.bytes_down += sum(map(len, requests.values()))
        found: dict[int, R] = {}
        untold: dict[int, int] = {}
        names = self._names
        replies = self._transport.exchange({names[owner]: request for owner, request in requests.items()}, what=what)
        self.silent = {owner for owner in requests if replies.get(names[owner]) is None}
        for owner in requests:
            packed = replies.get(names[owner])
            if packed is None:
                self.reasons[owner] = self._transport.silent.get(names[owner], _NO_ANSWER)
                continue
            self.bytes_up += len(packed)
            try:
                reply = unpack(packed)
            except BadMessage as error:
                self.reasons[owner] = str(error)
                continue
            if isinstance(reply, kind):
                found[owner] = reply
            elif isinstance(reply, NotTold) and owner in self.setup:
                untold[owner] = reply.known
            else:
                self.reasons[owner] = (
                    reply.reason if isinstance(reply, Refusal) else f"{type(reply).__name__}, not {what}"
                )
        return found, untold
