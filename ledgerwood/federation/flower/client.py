"""The app of an owner of rows, for Flower: it hands each request to the owner, and returns the reply."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ledgerwood.errors import FederationRefused
from ledgerwood.federation.flower.transport import ANSWER, BYTES, NUMBER, PARTITION, RECORD
from ledgerwood.federation.owners.service import Answering

if TYPE_CHECKING:
    from flwr.app import Context, Message, RecordDict
    from flwr.clientapp import ClientApp


_SESSION = "ledgerwood_session"


@final
@dataclass(slots=True, kw_only=True)
class _Here:
    """An owner in this process, and what last began a session for it here."""

    owner: Answering
    begun: bytes | None = None


_OWNERS: dict[tuple[str, int], _Here] = {}
"""The owners of this process, by app and node: rows are read and encoded once in each process."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClientMain:
    """Answers the messages of Flower's nodes, each with the owner of that node.

    Args:
        name: of the app, for this process's owners.
        owner: makes the owner of a node in this process.
        begins: whether a request begins a session: it is kept in Flower's state of the node, and handed to each other
            process of this owner before its next request. None where the owner is one process all the time.
    """

    name: str
    owner: "Callable[[Context], Answering]"
    begins: Callable[[bytes], bool] | None = None

    def number(self, message: "Message", context: "Context") -> "Message":
        """Says which partition the node's configuration gives it, if any."""
        from flwr.app import ConfigRecord, Message, RecordDict

        own = context.node_config.get("partition-id")
        content = ConfigRecord()
        if isinstance(own, int) and not isinstance(own, bool):
            content[PARTITION] = own
        return Message(RecordDict({RECORD: content}), reply_to=message)

    def answer(self, message: "Message", context: "Context") -> "Message":
        """Replies to one request.

        Raises:
            FederationRefused: the message has none.
        """
        from flwr.app import ConfigRecord, Message, RecordDict

        request = bytes_in(message.content, RECORD)
        if request is None:
            raise FederationRefused("a message without a request")
        place = self.name, context.node_id
        here = _OWNERS.get(place)
        if here is None:
            here = _Here(owner=self.owner(context))
        # Another process may have begun the session since this one answered, be it as the first one to be asked at all.
        begun = bytes_in(context.state, _SESSION)
        if begun is not None and begun not in (request, here.begun):
            here.owner.answer(begun)
            here.begun = begun
        _OWNERS[place] = here
        reply = here.owner.answer(request)
        if self.begins is not None and self.begins(request):
            context.state[_SESSION] = ConfigRecord({BYTES: request})
            here.begun = request
        return Message(RecordDict({RECORD: ConfigRecord({BYTES: reply})}), reply_to=message)


def app_that_answers(main: ClientMain) -> "ClientApp":
    """A Flower app for a client's main functions."""
    from flwr.clientapp import ClientApp

    app = ClientApp()
    app.query(NUMBER)(main.number)
    app.query(ANSWER)(main.answer)
    return app


def bytes_in(records: "RecordDict", name: str) -> bytes | None:
    """The bytes that are kept under a name in a message or in Flower's state of a node, if any."""
    found = records.config_records[name].get(BYTES) if name in records.config_records else None
    return found if isinstance(found, bytes) else None
