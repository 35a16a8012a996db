"""Flower as a carrier of bytes: who is numbered how, which replies count, and what reaches the caller."""

import uuid
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.supercore.task_identity import TaskIdentity

import ledgerwood as lw
from ledgerwood.errors import FederationRefused, InvalidParameter, OwnersLost
from ledgerwood.federation import client_app, server_app, session
from ledgerwood.federation.flower import client as flower_client
from ledgerwood.federation.flower.client import ClientMain, app_that_answers
from ledgerwood.federation.flower.server import ServerMain, app_that, fitted_by
from ledgerwood.federation.flower.simulation import simulate
from ledgerwood.federation.flower.transport import BYTES, RECORD, FlowerTransport
from ledgerwood.federation.training import train
from ledgerwood.trainers import SGBDTClassifier

RUN = 7
SCHEMA = lw.Schema(
    features=(lw.Numeric("a", 0, 1), lw.Numeric("b", 0, 1)), target=lw.Categorical("t", ("no", "yes"))
)  # fmt: skip


@pytest.fixture(autouse=True)
def a_task_of_flower(monkeypatch):
    """Flower's messages name the task that made them; its own processes set it."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, RUN)


class Node:
    def __init__(self, node_id: int, app: ClientApp, config: dict[str, object]):
        self.id, self.app = node_id, app
        self.context = Context(RUN, node_id, config, RecordDict(), {})

    def answered(self, message: Message) -> Message:
        return self.app(message, self.context)


class FakeGrid:
    """Holds replies until they are pulled; `spoil` turns the replies to one message into those that are delivered."""

    def __init__(self, nodes: Iterable[Node], spoil: Callable[[Message, Message], list[Message]] | None = None):
        self.nodes = {node.id: node for node in nodes}
        self.replies: dict[str, list[Message]] = {}
        self.asked: list[Message] = []
        self.spoil = spoil or (lambda _, reply: [reply])

    def get_node_ids(self):
        return list(self.nodes)

    def push_messages(self, messages):
        names = []
        for message in messages:
            name = message.metadata.__dict__["_message_id"] = uuid.uuid4().hex
            if message.metadata.dst_node_id not in self.nodes:
                names.append(None)
                continue
            names.append(name)
            self.asked.append(message)
            message.metadata.__dict__["_run_id"] = RUN
            try:
                reply = self.nodes[message.metadata.dst_node_id].answered(message)
            except Exception as error:  # noqa: BLE001  # as Flower's own processes do
                reply = Message(Error(code=2, reason=f"{type(error)}:<'{error}'>"), reply_to=message)
            for each in self.spoil(message, reply):
                self.replies.setdefault(each.metadata.reply_to_message_id, []).append(each)
        return names

    def pull_messages(self, names):
        return [reply for name in names for reply in self.replies.pop(name, [])]


class Echo:
    """An owner that says who it is and how many requests it has seen."""

    def __init__(self, name: str):
        self.name, self.seen = name, []

    def answer(self, request: bytes) -> bytes:
        if request == b"fails":
            raise ValueError("the value 4711 of a row")
        self.seen.append(request)
        return f"{self.name}:{len(self.seen)}:".encode() + request


def echoing(node: int, partition: int | None = None) -> Node:
    """A node of its own client app, as nodes on several machines are."""
    main = ClientMain(name=uuid.uuid4().hex, owner=lambda context: Echo(str(context.node_id)))
    return Node(node, app_that_answers(main), {} if partition is None else {"partition-id": partition})


def answered(reply: Message, content: object = b"forged", node: int | None = None) -> Message:
    """A reply to the same message, with other content, or as if of another node."""
    other = Message(RecordDict({RECORD: ConfigRecord({BYTES: content})}), reply_to=reply)
    other.metadata.__dict__.update(reply.metadata.__dict__)
    if node is not None:
        other.metadata.__dict__["_src_node_id"] = node
    return other


def test_clients_are_numbered_by_partition():
    grid = FakeGrid([echoing(900, 1), echoing(5, 2), echoing(77, 0)])
    transport = FlowerTransport.connected(grid, 3, wait=60, timeout=60)
    assert transport.clients == (0, 1, 2)
    assert transport.exchange({0: b"a", 1: b"b", 2: b"c"}, what="hello") == {
        0: b"77:1:a", 1: b"900:1:b", 2: b"5:1:c"
    }  # fmt: skip


def test_clients_are_numbered_by_node_where_one_has_no_partition():
    grid = FakeGrid([echoing(900, 1), echoing(5, 2), echoing(77)])
    transport = FlowerTransport.connected(grid, 3, wait=60, timeout=60)
    replies = transport.exchange(dict.fromkeys(range(3), b"x"), what="hello")
    assert replies == {0: b"5:1:x", 1: b"77:1:x", 2: b"900:1:x"}


def test_gaps_between_partitions_leave_no_gap_between_clients():
    transport = FlowerTransport.connected(FakeGrid([echoing(1, 40), echoing(2, 3)]), 2, wait=60, timeout=60)
    assert transport.exchange({0: b"x"}, what="hello") == {0: b"2:1:x"}


def test_two_nodes_of_one_partition_are_refused_by_name():
    grid = FakeGrid([echoing(12, 0), echoing(13, 0)])
    with pytest.raises(FederationRefused, match="nodes 12 and 13 both have partition-id=0"):
        FlowerTransport.connected(grid, 2, wait=60, timeout=60)


def test_too_few_nodes_are_lost_before_anything_is_asked():
    grid = FakeGrid([echoing(12, 0)])
    with pytest.raises(OwnersLost, match=r"1 of 2 nodes answered within 0\.1 seconds .* Nothing was spent"):
        FlowerTransport.connected(grid, 2, wait=0.1, timeout=5)


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        ((2, 0), {0: b"2:1:x", 2: b"1:1:x"}),  # nobody has partition 1
        ((7, 3), {0: b"2:1:x", 1: b"1:1:x"}),  # who is missing cannot be told: the last number
        ((None, None), {0: b"1:1:x", 1: b"2:1:x"}),
    ],
)
def test_clients_whose_nodes_do_not_connect_are_silent_where_they_may_be(partitions, expected):
    grid = FakeGrid([echoing(number, partition) for number, partition in enumerate(partitions, start=1)])
    transport = FlowerTransport.connected(grid, 3, least=2, wait=0.01, timeout=5)
    assert transport.clients == (0, 1, 2)
    assert transport.exchange(dict.fromkeys(range(3), b"x"), what="hello") == expected
    (missing,) = set(range(3)) - set(expected)
    assert transport.silent == {missing: "its node did not connect before the fit began"}
    with pytest.raises(OwnersLost, match="2 of 3 nodes answered"):
        FlowerTransport.connected(grid, 3, wait=0.01, timeout=5)


def test_nodes_that_have_answered_by_the_end_are_taken_however_late_it_is():
    """A process that is held up for longer than it wanted to wait looks at what has come all the same."""
    grid = FakeGrid([echoing(1), echoing(2)])
    assert FlowerTransport.connected(grid, 2, wait=1e-9, timeout=5).clients == (0, 1)
    with pytest.raises(OwnersLost, match="2 of 3 nodes answered"):
        FlowerTransport.connected(grid, 3, wait=1e-9, timeout=5)


def test_nodes_that_connect_later_are_waited_for():
    grid = FakeGrid([echoing(12, 0)])
    late = echoing(13, 1)
    ids = grid.get_node_ids

    def get_node_ids():
        if grid.asked:
            grid.nodes[13] = late
        return ids()

    grid.get_node_ids = get_node_ids
    assert FlowerTransport.connected(grid, 2, wait=60, timeout=60).clients == (0, 1)


def test_nodes_beyond_the_expected_number_are_left_out():
    grid = FakeGrid([echoing(node, node) for node in range(4)])
    assert FlowerTransport.connected(grid, 3, wait=60, timeout=60).clients == (0, 1, 2)


def test_what_has_come_by_the_end_is_taken_however_late_it_is():
    transport = transport_of(FakeGrid([echoing(1), echoing(2)]), timeout=1e-6)
    assert transport.exchange({0: b"x", 1: b"y"}, what="upload") == {0: b"1:1:x", 1: b"2:1:y"}
    assert transport.silent == {}


def transport_of(grid: FakeGrid, timeout: float = 0.2) -> FlowerTransport:
    return FlowerTransport(grid, sorted(grid.nodes), timeout=timeout)


def test_who_does_not_answer_in_time_is_missing_and_only_he():
    grid = FakeGrid(
        [echoing(1), echoing(2)], lambda message, reply: [] if message.metadata.dst_node_id == 2 else [reply]
    )
    transport = transport_of(grid)
    assert transport.exchange({0: b"x", 1: b"x"}, what="upload 3") == {0: b"1:1:x"}
    assert transport.silent == {1: "no reply to 'upload 3' within 0.2 seconds"}


def test_a_late_reply_is_ignored_in_the_next_exchange():
    late = []

    def spoil(message, reply):
        if message.metadata.group_id == "first" and message.metadata.dst_node_id == 2:
            late.append(reply)
            return []
        # It comes now, in the place of the second exchange's, for whatever message the grid is asked.
        return [*late, reply] if message.metadata.dst_node_id == 2 else [reply]

    grid = FakeGrid([echoing(1), echoing(2)], spoil)
    pull = grid.pull_messages
    grid.pull_messages = lambda names: [
        *pull(names),
        *(each for held in list(grid.replies) for each in grid.replies.pop(held)),
    ]
    transport = transport_of(grid)
    assert transport.exchange({0: b"one", 1: b"one"}, what="first") == {0: b"1:1:one"}
    assert transport.exchange({0: b"two", 1: b"two"}, what="second") == {0: b"1:2:two", 1: b"2:2:two"}
    assert transport.silent == {}


def test_a_doubled_reply_counts_once_and_the_first_stays():
    grid = FakeGrid([echoing(1), echoing(2)], lambda message, reply: [reply, answered(reply)])
    assert transport_of(grid).exchange({0: b"x", 1: b"x"}, what="upload") == {0: b"1:1:x", 1: b"2:1:x"}


def test_a_reply_of_another_node_is_ignored():
    def spoil(message, reply):
        return [answered(reply, node=1)] if message.metadata.dst_node_id == 2 else [reply]

    transport = transport_of(FakeGrid([echoing(1), echoing(2)], spoil))
    assert transport.exchange({0: b"x", 1: b"x"}, what="upload") == {0: b"1:1:x"}


@pytest.mark.parametrize("content", ["text", 5, [b"several"]], ids=str)
def test_a_reply_without_bytes_is_none(content):
    transport = transport_of(FakeGrid([echoing(1)], lambda _, reply: [answered(reply, content)]))
    assert transport.exchange({0: b"x"}, what="upload") == {}
    assert transport.silent == {0: "the reply has no bytes"}


def test_an_owner_that_raises_is_missing_at_once():
    transport = transport_of(FakeGrid([echoing(1), echoing(2)]), timeout=60)
    assert transport.exchange({0: b"fails", 1: b"x"}, what="upload") == {1: b"2:1:x"}
    assert "ValueError" in transport.silent[0]


def test_a_fit_says_why_nobody_answered(monkeypatch):
    monkeypatch.setattr(session, "_PAUSE", 0.01)  # seconds until who is silent is asked again
    estimator = SGBDTClassifier(epsilon=1.0, delta=1e-6, schema=SCHEMA)
    grid = FakeGrid(
        [echoing(1), echoing(2)], lambda message, _: [Message(Error(code=5, reason="gone"), reply_to=message)]
    )
    with pytest.raises(FederationRefused, match="owner 0: gone; owner 1: gone"):
        train(estimator, transport_of(grid, timeout=60))


def test_the_apps_of_a_federation_give_the_central_model(tmp_path):
    X = np.random.default_rng(0).random((300, 2))
    y = np.where(X[:, 0] > 0.5, "yes", "no")
    options = {"epsilon": 1.0, "delta": 1e-6, "schema": SCHEMA, "random_state": 5, "n_estimators": 2, "max_depth": 2}
    budget = lw.Budget(epsilon=5.0, delta=1e-5, adjacency=lw.Adjacency.ADD_REMOVE)
    client = client_app(
        lambda context: tuple(each[context.node_id :: 3] for each in (X, y)),
        lambda context: tmp_path / f"{context.node_id}.ledger.jsonl",
        dataset="rows", budget=budget, unit=lw.PrivacyUnit.ROW, allow_seed=True,
    )  # fmt: skip

    class EachTime(Node):
        """A node that has another process for each message."""

        def answered(self, message):
            flower_client._OWNERS.clear()
            return super().answered(message)

    app = server_app(SGBDTClassifier(**options), clients=3, model=tmp_path / "model")
    ran(app, FakeGrid([EachTime(number, client, {}) for number in range(3)]))
    central = SGBDTClassifier(**options).fit(X, y)
    assert np.array_equal(SGBDTClassifier.load(tmp_path / "model").predict_proba(X), central.predict_proba(X))
    for number in range(3):
        spent = lw.Ledger.open(tmp_path / f"{number}.ledger.jsonl").spent()
        assert spent.epsilon == pytest.approx(1.0, abs=1e-6)


def test_a_fit_begins_without_a_node_that_may_be_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "_PAUSE", 0.01)
    X = np.random.default_rng(0).random((300, 2))
    y = np.where(X[:, 0] > 0.5, "yes", "no")
    options = {"epsilon": 1.0, "delta": 1e-6, "schema": SCHEMA, "random_state": 5, "n_estimators": 2, "max_depth": 2}
    client = client_app(
        lambda context: tuple(each[context.node_config["partition-id"] :: 3] for each in (X, y)),
        lambda context: tmp_path / f"{context.node_id}.ledger.jsonl",
        dataset="rows", unit=lw.PrivacyUnit.ROW, allow_seed=True,
        budget=lw.Budget(epsilon=5.0, delta=1e-5, adjacency=lw.Adjacency.ADD_REMOVE),
    )  # fmt: skip
    app = server_app(SGBDTClassifier(**options), clients=3, wait=0.5, dropouts=0.34)
    ran(app, FakeGrid([Node(1, client, {"partition-id": 2}), Node(2, client, {"partition-id": 0})]))
    there = np.arange(300) % 3 != 1
    central = SGBDTClassifier(**options).fit(*(np.concatenate([each[0::3], each[2::3]]) for each in (X, y)))
    assert np.array_equal(fitted_by(app).predict_proba(X[there]), central.predict_proba(X[there]))
    assert fitted_by(app).federation_.absent == (1,)


def test_a_node_that_is_gone_is_missing_at_once():
    grid = FakeGrid([echoing(1), echoing(2)])
    transport = transport_of(grid, timeout=60)
    del grid.nodes[2]
    assert transport.exchange({0: b"x", 1: b"x"}, what="upload") == {0: b"1:1:x"}
    assert "not connected" in transport.silent[1]


def test_requests_of_unknown_clients_are_refused_before_one_is_sent():
    grid = FakeGrid([echoing(1)])
    with pytest.raises(InvalidParameter, match="requests"):
        transport_of(grid).exchange({0: b"x", 1: b"x"}, what="upload")
    assert grid.asked == []


def test_a_request_dies_with_its_timeout():
    grid = FakeGrid([echoing(1)])
    transport_of(grid, timeout=12).exchange({0: b"x"}, what="upload")
    assert [message.metadata.ttl for message in grid.asked] == [12]


def test_an_owner_is_made_once_in_a_process_and_node():
    made = []
    main = ClientMain(name=uuid.uuid4().hex, owner=lambda context: made.append(context.node_id) or Echo("owner"))
    app = app_that_answers(main)
    transport = transport_of(FakeGrid([Node(1, app, {}), Node(2, app, {})]))
    for asked in (b"x", b"y"):
        transport.exchange({0: asked, 1: asked}, what="upload")
    assert made == [1, 2]


def test_another_process_is_told_first_what_began_the_session():
    owners = []
    main = ClientMain(
        name=uuid.uuid4().hex,
        owner=lambda _: owners.append(Echo("owner")) or owners[-1],
        begins=lambda x: x == b"begin",
    )
    transport = transport_of(FakeGrid([Node(1, app_that_answers(main), {})]))
    for request in (b"hello", b"begin", b"ask"):
        transport.exchange({0: request}, what="upload")
    flower_client._OWNERS.clear()  # as another process has none
    transport.exchange({0: b"ask again"}, what="upload")
    flower_client._OWNERS.clear()
    transport.exchange({0: b"begin"}, what="upload")  # not twice
    assert [owner.seen for owner in owners] == [[b"hello", b"begin", b"ask"], [b"begin", b"ask again"], [b"begin"]]


def test_a_process_that_has_the_owner_is_told_of_a_session_that_began_in_another():
    owners = []
    main = ClientMain(
        name=uuid.uuid4().hex,
        owner=lambda _: owners.append(Echo("owner")) or owners[-1],
        begins=lambda x: x.startswith(b"begin"),
    )
    transport = transport_of(FakeGrid([Node(1, app_that_answers(main), {})]))
    processes = [{}, {}]

    def asked(process, request):
        flower_client._OWNERS.clear()
        flower_client._OWNERS.update(processes[process])
        transport.exchange({0: request}, what="upload")
        processes[process] = dict(flower_client._OWNERS)

    for process, request in enumerate((b"hello", b"begin 1", b"ask", b"ask again", b"begin 2", b"ask", b"ask")):
        asked(process % 2, request)
    assert [owner.seen for owner in owners] == [
        [b"hello", b"begin 1", b"ask", b"begin 2", b"ask"],
        [b"begin 1", b"ask again", b"begin 2", b"ask"],
    ]


class Fitted:
    def __init__(self, replies):
        self.replies = replies

    def save(self, path):
        path.write_bytes(b" ".join(self.replies[number] for number in sorted(self.replies)))


def trained(transport):
    return Fitted(transport.exchange(dict.fromkeys(transport.clients, b"hello"), what="hello"))


def server(train=trained, **given):
    return app_that(
        ServerMain(**{"train": train, "clients": None, "model": None, "wait": 60.0, "timeout": 60.0, **given})
    )


def ran(app: ServerApp, grid: FakeGrid, **config):
    app(grid, Context(RUN, 0, {}, RecordDict(), config))


def test_the_servers_app_trains_and_saves_where_told(tmp_path):
    app = server(model=tmp_path / "model", clients=2)
    ran(app, FakeGrid([echoing(1), echoing(2)]))
    assert (tmp_path / "model").read_bytes() == b"1:1:hello 2:1:hello"
    assert fitted_by(app).replies == {0: b"1:1:hello", 1: b"2:1:hello"}


def test_the_runs_configuration_gives_what_the_app_was_not_given(tmp_path):
    ran(server(), FakeGrid([echoing(1), echoing(2)]), clients=2, model=str(tmp_path / "model"))
    assert (tmp_path / "model").read_bytes() == b"1:1:hello 2:1:hello"


def test_a_run_without_a_number_of_clients_is_refused():
    with pytest.raises(InvalidParameter, match="clients=None"):
        ran(server(), FakeGrid([]))


def test_a_model_that_could_not_be_saved_is_not_trained(tmp_path):
    grid = FakeGrid([echoing(1)])
    with pytest.raises(FileNotFoundError):
        ran(server(model=tmp_path / "nowhere" / "model", clients=1), grid)
    assert grid.asked == []


class Local(Exception):
    """An error with a type of its own."""


def failing(transport):
    raise Local(f"{len(transport.clients)} clients")


def named_by_partition(context):
    return Echo(str(context.node_config["partition-id"]))


@pytest.mark.slow  # ray starts twice: 15 to 60 s
@pytest.mark.filterwarnings("default")  # ray's and Flower's own
def test_a_simulation_returns_the_model_and_raises_the_servers_own_error(only_ray):
    import ray

    client = app_that_answers(ClientMain(name=uuid.uuid4().hex, owner=named_by_partition))
    fitted = simulate(server(clients=3, wait=200.0, timeout=200.0), client, 3, cores=2)
    assert fitted.replies == {0: b"0:1:hello", 1: b"1:1:hello", 2: b"2:1:hello"}
    assert not ray.is_initialized()
    with pytest.raises(Local, match="2 clients"):
        simulate(server(failing, clients=2, wait=200.0), client, 2, cores=1)
    assert not ray.is_initialized()


class FakeRay:
    """Fails to start for some times."""

    def __init__(self, monkeypatch, fails=0, running=False):
        import ray

        self.fails, self.running, self.started = fails, running, []
        for name in ("init", "shutdown", "is_initialized"):
            monkeypatch.setattr(ray, name, getattr(self, name))
        monkeypatch.setattr("flwr.simulation.run_simulation", self.run)

    def init(self, **options):
        self.started.append(options)
        if len(self.started) <= self.fails:
            raise RuntimeError("the node timed out")
        self.running = True

    def shutdown(self):
        self.running = False

    def is_initialized(self):
        return self.running

    def run(self, *, server_app, **_):
        assert self.running
        server_app(FakeGrid([]), Context(RUN, 0, {}, RecordDict(), {}))


def test_a_ray_that_does_not_start_is_started_again(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")  # a cluster of the user: rows are not to go there
    ray = FakeRay(monkeypatch, fails=5)
    with pytest.raises(InvalidParameter, match="clients=None"):  # the server's own error: its app was run
        simulate(server(), client_app(lambda _: None, lambda _: None), 2)
    assert [each["address"] for each in ray.started] == ["local"] * 6
    assert not ray.running


def test_a_ray_that_never_starts_ends_the_simulation(monkeypatch):
    ray = FakeRay(monkeypatch, fails=6)
    with pytest.raises(OwnersLost, match="ray did not start, 6 times"):
        simulate(server(), client_app(lambda _: None, lambda _: None), 2)
    assert len(ray.started) == 6


def test_what_a_ray_that_did_not_start_has_started_is_ended(monkeypatch):
    """`ray.shutdown` knows nothing of it: its processes would run until this one ends, beside the next start's."""
    from ray._private.node import Node

    ended = []
    monkeypatch.setattr(Node, "__init__", lambda self: started(self))
    monkeypatch.setattr(Node, "kill_all_processes", lambda self, **options: ended.append(self))

    def started(self):
        raise RuntimeError("the node timed out")

    ray = FakeRay(monkeypatch, fails=2)
    init = ray.init

    def starts(**options):
        if len(ray.started) < 2:
            ray.started.append(options)
            Node()
        return init(**options)

    monkeypatch.setattr("ray.init", starts)
    with pytest.raises(InvalidParameter, match="clients=None"):
        simulate(server(), client_app(lambda _: None, lambda _: None), 2)
    assert len(ended) == 2
    assert len(set(map(id, ended))) == 2


def test_a_ray_of_the_user_is_left_alone(monkeypatch):
    ray = FakeRay(monkeypatch, running=True)
    with pytest.raises(FederationRefused, match="uses ray already"):
        simulate(server(), client_app(lambda _: None, lambda _: None), 2)
    assert ray.running
    assert ray.started == []
