"""An owner's own process: bytes over a local socket, which only its user may open."""

import socket
import stat
import struct

import msgpack
import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import FederationRefused, InvalidParameter, OwnersLost
from ledgerwood.federation import OwnerSocket, client_app, owner_of
from ledgerwood.federation.agreed import is_setup, version
from ledgerwood.federation.codec import pack, unpack
from ledgerwood.federation.messages import PROTOCOL, ColumnNames, Describe, Refusal
from ledgerwood.federation.owners.service import forwarded, serving_owner


class Echo:
    def answer(self, request):
        return b"re: " + request


@pytest.fixture
def place(tmp_path):
    return tmp_path / "socket"


def answer(place, request, **more):
    return forwarded(OwnerSocket(path=str(place), **more), None).answer(request)


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_requests_and_replies_of_any_size_come_through(place, size):
    request = np.random.default_rng(0).bytes(size)
    with serving_owner(Echo(), place):
        assert answer(place, request) == b"re: " + request
        assert answer(place, b"again") == b"re: again"


def test_the_socket_is_its_users_own_and_goes_with_its_process(place):
    with serving_owner(Echo(), place):
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert not place.exists()
    with serving_owner(Echo(), place, mode=0o660):
        assert stat.S_IMODE(place.stat().st_mode) == 0o660


def test_nobody_there_is_said_with_what_to_do(place):
    with pytest.raises(OwnersLost, match="start it with serve_owner"):
        answer(place, b"x")


def test_an_owner_that_takes_too_long_is_given_up(place):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(place))
        silent.listen()
        with pytest.raises(OwnersLost, match="TimeoutError"):
            answer(place, b"x", timeout=0.1)


def test_a_socket_in_use_is_not_taken_over_and_one_left_behind_is(place):
    with serving_owner(Echo(), place), pytest.raises(FileExistsError, match="another process listens"):
        serving_owner(Echo(), place).__enter__()
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(place))
    left.close()  # as a process does that is killed: the file stays
    with serving_owner(Echo(), place):
        assert answer(place, b"x") == b"re: x"
    place.write_text("a file")
    with pytest.raises(FileExistsError, match="not a socket"):
        serving_owner(Echo(), place).__enter__()
    assert place.read_text() == "a file"


@pytest.mark.parametrize("sent", [b"", b"short", struct.pack(">Q", 1 << 62), struct.pack(">Q", 10) + b"less"])
def test_what_is_no_message_gets_no_answer_and_stops_nobody(place, sent):
    with serving_owner(Echo(), place):
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(place))
            line.sendall(sent)
            line.shutdown(socket.SHUT_WR)
            assert line.recv(10) == b""
        assert answer(place, b"x") == b"re: x"


def test_the_nodes_configuration_names_the_socket(place):
    with serving_owner(Echo(), place):
        assert forwarded(OwnerSocket(), str(place)).answer(b"x") == b"re: x"
    for nothing in (None, "", 5):
        with pytest.raises(InvalidParameter, match="owner="):
            forwarded(OwnerSocket(), nothing)


def test_an_owner_is_made_of_rows_ledger_and_key(tmp_path):
    budget = lw.Budget(epsilon=1.0, delta=1e-6, adjacency=lw.Adjacency.ADD_REMOVE)
    own = {"key": tmp_path / "key", "dataset": "rows", "budget": budget, "unit": lw.PrivacyUnit.ROW}
    owner = owner_of(lambda: (np.zeros((5, 3)), np.zeros(5)), tmp_path / "ledger.jsonl", **own)
    request = pack(Describe(protocol=PROTOCOL, version=version()))
    assert unpack(owner.answer(request)) == ColumnNames(n_features=3, names=())
    wrong = owner_of((np.zeros((5, 3)),), tmp_path / "ledger.jsonl", **own)
    assert isinstance(unpack(wrong.answer(request)), Refusal)
    assert (tmp_path / "key").stat().st_size == 32


def test_a_client_app_without_a_ledger_is_refused():
    with pytest.raises(InvalidParameter, match="ledger=None"):
        client_app((np.zeros((5, 3)), np.zeros(5)))
    with pytest.raises(FederationRefused, match="given to the process behind"):
        client_app(OwnerSocket(), "ledger.jsonl")


def test_what_begins_a_session_is_known_by_its_kind_alone():
    described = pack(Describe(protocol=PROTOCOL, version=version()))
    begins = msgpack.packb(msgpack.ExtType(2, msgpack.packb(["Begin", "and whatever comes after it"])))
    assert [is_setup(each) for each in (begins, described, b"", b"\xc1", begins[:-40])] == [True] + [False] * 4
