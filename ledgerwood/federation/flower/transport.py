"""A federation over Flower: its messages carry the bytes of requests and replies, and nothing else.

Flower finds the nodes, starts the processes, encrypts and authenticates. What is in the bytes is not its business, and
nothing here opens them. docs/how-to/deploy-a-federation.md.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, final

from ledgerwood import _extras, _validate
from ledgerwood.errors import FederationRefused, OwnersLost

if TYPE_CHECKING:
    from flwr.app import Message
    from flwr.serverapp import Grid

NUMBER, ANSWER = "ledgerwood_number", "ledgerwood_answer"
"""The two kinds of message: a node says which partition it has, an owner answers a request."""
RECORD, BYTES, PARTITION = "ledgerwood", "bytes", "partition"
TIMEOUT = 600.0
"""Seconds for an exchange, and for the nodes to connect, unless told otherwise."""
_PAUSE = 0.02
_LONGEST_PAUSE = 0.5
_LONGEST_REASON = 300


def require_flower(name: str) -> None:
    """Refuse a name that needs Flower where it is not installed.

    Raises:
        ModuleNotFoundError: the message names the extra that brings it.
    """
    try:
        import flwr.app  # noqa: F401
    except ModuleNotFoundError as missing:
        raise _extras.needed(f"ledgerwood.federation.{name}", missing) from missing


@final
class FlowerTransport:
    """Carries requests to the nodes of one Flower run, and brings their replies.

    A reply counts once, and only for the message that it answers: one that comes late, in a later exchange, or a second
    time is ignored, and so is one that another node sent than the one that was asked. A request that was not delivered
    within the timeout is not delivered any more.

    Args:
        grid: of the run, as Flower hands it to a server app.
        nodes: the ids of the nodes, client 0 first; None for a client whose node did not connect.
        timeout: of an exchange, seconds.
    """

    __slots__ = ("_grid", "_nodes", "_silent", "_timeout")

    def __init__(self, grid: "Grid", nodes: Sequence[int | None], *, timeout: float = TIMEOUT) -> None:
        require_flower("FlowerTransport")
        self._grid = grid
        self._nodes: tuple[int | None, ...] = _validate.items("nodes", nodes, "node ids")
        there = [node for node in self._nodes if node is not None]
        if not there or len(set(there)) != len(there):
            raise _validate.fail("nodes", self._nodes, "one or more different ids", "node ids")
        self._timeout = _validate.positive("timeout", timeout, "seconds")
        self._silent: dict[int, str] = {}

    @classmethod
    def connected(
        cls, grid: "Grid", clients: int, *, least: int | None = None, wait: float = TIMEOUT, timeout: float = TIMEOUT
    ) -> "FlowerTransport":
        """Wait until some number of nodes have answered, and number them.

        Clients are numbered in the order of the nodes' `partition-id`, where each node has one in its configuration,
        and in the order of their node ids otherwise. Nodes beyond the number that is waited for are left out. A client
        whose node did not connect in time is silent: the one without a node of its `partition-id`, where these are
        below the number of clients; otherwise the last ones.

        Args:
            grid: of the run.
            clients: how many nodes are waited for.
            least: how many of them suffice when the time is over; None: all.
            wait: for how long, seconds.
            timeout: of a later exchange, seconds.

        Raises:
            OwnersLost: fewer nodes answered in time. Nothing was spent.
            FederationRefused: two nodes have the same partition-id.
        """
        expected = _validate.count("clients", clients, "nodes")
        enough = expected if least is None else _validate.count("least", least, "nodes")
        end = time.monotonic() + _validate.positive("wait", wait, "seconds")
        found: dict[int, int | None] = {}
        reasons: dict[int, str] = {}
        asked: dict[int, float] = {}
        mail = _Mail(grid)
        late = False
        while len(found) < expected and not (late and len(found) >= enough):
            if late:
                silent = [f"node {node}: {why}" for node, why in reasons.items()]
                raise OwnersLost(
                    f"{len(found)} of {expected} nodes answered within {wait:g} seconds (wait=), and {len(asked)} were "
                    f"connected{': ' if silent else ''}{'; '.join(silent)}. Nothing was spent. Start the missing nodes"
                )
            now = time.monotonic()
            late = now >= end  # what has come by then is taken, however long this process was held up
            # Who has not answered for a while is asked again: its process may have been started anew.
            due = [node for node in grid.get_node_ids() if node not in found and now - asked.get(node, -1e9) > timeout]
            mail.send(dict.fromkeys(due), NUMBER, what="number", ttl=max(end - now, 1.0))
            asked.update(dict.fromkeys(due, now))
            for node, reply in mail.received():
                if reply.has_error():
                    reasons[node] = reply.error.reason or "failed"
                elif len(found) < expected:
                    found[node] = _partition(reply)
            if len(found) < expected and not late:
                mail.pause()
        return cls(grid, _numbered(found, expected), timeout=timeout)

    @property
    def clients(self) -> tuple[int, ...]:
        """The numbers of all clients: 0, 1, ..."""
        return tuple(range(len(self._nodes)))

    @property
    def silent(self) -> Mapping[int, str]:
        """The clients that did not answer the last exchange, and why, as far as Flower knows."""
        return dict(self._silent)

    def exchange(self, requests: Mapping[int, bytes], *, what: str) -> dict[int, bytes]:
        """Send a request to each of some clients, and return the replies of those that answered in time.

        Args:
            requests: by number of the client.
            what: is asked, for Flower's logs.
        """
        unknown = sorted(set(requests) - set(self.clients))
        if unknown:
            raise _validate.fail("requests", unknown, f"in [0, {len(self._nodes)})", "clients")
        nodes = {node: number for number in requests if (node := self._nodes[number]) is not None}
        self._silent = {
            number: f"no reply to {what!r} within {self._timeout:g} seconds"
            if self._nodes[number] is not None
            else "its node did not connect before the fit began"
            for number in requests
        }
        replies: dict[int, bytes] = {}
        mail = _Mail(self._grid)
        end = time.monotonic() + self._timeout
        mail.send({node: requests[number] for node, number in nodes.items()}, ANSWER, what=what, ttl=self._timeout)
        for node in nodes.keys() - mail.waiting:
            self._silent[nodes[node]] = "Flower did not take the message: the node is not connected"
        late = False
        while mail.waiting and not late:
            late = time.monotonic() >= end  # what has come by then is taken, however long this process was held up
            for node, reply in mail.received():
                content = _content(reply)
                if content is None:
                    why = reply.error.reason if reply.has_error() else "the reply has no bytes"
                    self._silent[nodes[node]] = (why or "failed")[:_LONGEST_REASON]
                else:
                    replies[nodes[node]] = content
                    del self._silent[nodes[node]]
            if mail.waiting and not late:
                mail.pause()
        return replies


@final
class _Mail:
    """Messages under way: each to one node, each with at most one reply."""

    def __init__(self, grid: "Grid") -> None:
        self._grid, self._nodes, self._begin = grid, dict[str, int](), time.monotonic()

    @property
    def waiting(self) -> frozenset[int]:
        """The nodes that have not answered yet."""
        return frozenset(self._nodes.values())

    def send(self, requests: Mapping[int, bytes | None], kind: str, *, what: str, ttl: float) -> None:
        from flwr.app import ConfigRecord, Message, RecordDict

        if not requests:
            return
        messages = {
            node: Message(
                RecordDict({RECORD: ConfigRecord({} if request is None else {BYTES: request})}),
                dst_node_id=node,
                message_type=f"query.{kind}",
                ttl=ttl,
                group_id=what,
            )
            for node, request in requests.items()
        }
        taken = {str(name) for name in self._grid.push_messages(list(messages.values())) if name}
        self._nodes.update(
            {name: node for node, each in messages.items() if (name := each.metadata.message_id) in taken}
        )

    def received(self) -> list[tuple[int, "Message"]]:
        """The replies that have come since, with the node of each."""
        if not self._nodes:
            return []
        found = []
        for reply in self._grid.pull_messages(list(self._nodes)):
            node = self._nodes.get(reply.metadata.reply_to_message_id)
            # Where a message could not be delivered Flower itself answers, with an error, in the node's place.
            if node is None or (not reply.has_error() and reply.metadata.src_node_id != node):
                continue
            del self._nodes[reply.metadata.reply_to_message_id]
            found.append((node, reply))
        return found

    def pause(self) -> None:
        """Wait for a tenth of the time that it has taken so far, within bounds."""
        time.sleep(min(max(0.1 * (time.monotonic() - self._begin), _PAUSE), _LONGEST_PAUSE))


def _content(reply: "Message") -> bytes | None:
    if not reply.has_content() or RECORD not in reply.content.config_records:
        return None
    content = reply.content.config_records[RECORD].get(BYTES)
    return content if isinstance(content, bytes) else None


def _partition(reply: "Message") -> int | None:
    if RECORD not in reply.content.config_records:
        return None
    found = reply.content.config_records[RECORD].get(PARTITION)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def _numbered(found: Mapping[int, int | None], clients: int) -> list[int | None]:
    """The node of each client, in the order of their numbers; None for a client without one."""
    partitions = {node: number for node, number in found.items() if number is not None}
    missing: list[int | None] = [None] * (clients - len(found))
    if len(partitions) < len(found):
        return [*sorted(found), *missing]
    by_partition: dict[int, int] = {}
    for node, number in partitions.items():
        if number in by_partition:
            raise FederationRefused(
                f"nodes {by_partition[number]} and {node} both have partition-id={number}: give each node of its own "
                "--node-config 'partition-id=...', or none of them. Nothing was spent"
            )
        by_partition[number] = node
    if missing and max(by_partition) < clients:
        return [by_partition.get(number) for number in range(clients)]
    return [*(by_partition[number] for number in sorted(by_partition)), *missing]
