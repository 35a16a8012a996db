"""The tests' own entropy: the same in each run, fresh within a test, and the system's in other processes."""

import os
import random
import secrets
import sys
import threading
import warnings

import numpy as np
import pytest

from ledgerwood.mechanisms import SecureRandom

pytestmark = pytest.mark.skipif(bool(os.environ.get("LEDGERWOOD_ENTROPY")), reason="LEDGERWOOD_ENTROPY asks for other")
SHARED = SecureRandom()


def test_it_is_the_stream_of_the_test(request):
    stream = random.Random(f" {request.node.nodeid}")
    assert os.urandom(16) == stream.randbytes(16)
    assert secrets.token_bytes(16) == stream.randbytes(16)
    assert os.urandom(16) != random.Random(f" {request.node.nodeid}").randbytes(16)  # no byte comes twice


@pytest.mark.parametrize("turn", [0, 1])
def test_a_source_of_many_tests_is_keyed_in_each(turn):
    first = SHARED.uint64(4)
    state = SHARED._state.owner
    assert not np.isin(SecureRandom().uint64(1000), first).any()
    assert SHARED._state.owner == state  # and not within one


def test_generators_without_a_seed_differ_within_a_test():
    drawn = [np.random.default_rng().integers(2**63) for _ in range(3)]
    drawn += [SecureRandom().uint64(1)[0] for _ in range(3)]
    assert len(set(map(int, drawn))) == 6


@pytest.fixture
def key():
    return os.urandom(16)


class TestOverridden:
    @pytest.fixture
    def key(self, key):
        return key, os.urandom(16)

    def test_a_fixture_draws_other_bytes_than_the_one_it_overrides(self, key):
        first, second = key
        assert len({first, second, os.urandom(16)}) == 3


def test_other_threads_do_not_shift_the_stream(request):
    found = []
    thread = threading.Thread(target=lambda: found.append(os.urandom(16)))
    thread.start()
    thread.join()
    own = os.urandom(16)
    assert own == random.Random(f" {request.node.nodeid}").randbytes(16)
    assert found != [own]


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no fork")
def test_a_forked_child_has_the_entropy_of_the_system():
    seen = []
    for _ in range(2):
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside other libraries' threads
            child = os.fork()
        if child == 0:
            try:
                os.write(writer, os.urandom(16))
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            seen.append(pipe.read())
        os.waitpid(child, 0)
    assert len({*seen, os.urandom(16)}) == 3
