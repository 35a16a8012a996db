"""The protocol from end to end: sums are exact, whoever drops out, in whatever order messages come."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.errors import SumIncomplete, SumRefused
from ledgerwood.secure_aggregation import SumTerms, Upload


def subsets(numbers, least):
    numbers = sorted(numbers)
    return [set(found) for size in range(least, len(numbers) + 1) for found in itertools.combinations(numbers, size)]


def patterns(n, threshold):
    """Who uploads and who of them opens: all patterns for few clients, each number of dropouts for many."""
    if n <= 5:
        return [(up, opening) for up in subsets(range(n), threshold) for opening in subsets(up, threshold)]
    return [
        (set(range(gone, n)), set(range(gone + late, n)))
        for gone in range(n - threshold + 1)
        for late in range(n - gone - threshold + 1)
    ]


@pytest.mark.parametrize("n", range(2, 13))
def test_sums_are_exact_for_every_pattern_of_dropouts(session_of, n):
    session = session_of(n)
    found = patterns(n, session.terms.threshold)
    for number, (uploading, opening) in enumerate(found, start=1):
        server = session.run(session.context(round=number), uploading=uploading, opening=opening)
        assert server.uploaded == uploading
        assert server.total().tolist() == session.expected(uploading)
    assert len(found) >= 1


@pytest.mark.slow  # thousands of attempts
@pytest.mark.parametrize("n", range(6, 13))
def test_sums_are_exact_whoever_uploads_and_whoever_opens(session_of, n):
    """Every set of uploads, each with every number of silent openers, who are others each time."""
    session = session_of(n)
    number, least = 0, session.terms.threshold
    for uploading in subsets(range(n), least):
        for silent in range(len(uploading) - least + 1):
            number += 1
            turned = sorted(uploading, key=lambda i: (i * 7 + number) % n)
            server = session.run(session.context(round=number), uploading=uploading, opening=turned[silent:])
            assert server.total().tolist() == session.expected(uploading)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_whoever_is_silent_when_pairs_are_asked_for_costs_an_attempt_and_no_more(session_of, n):
    session, number = session_of(n), 0
    for gone in range(n):
        survivors = session.everyone - {gone}
        for answering in subsets(survivors, session.terms.threshold):
            number += 1
            server = session.server(session.context(round=number))
            for i in survivors:
                server.add(i, session.upload(i, server.context, session.everyone))
            server.close()
            for i in answering:
                session.recover(i, server)
            silent = survivors - answering
            assert server.to_recover == silent
            if not silent:
                continue
            with pytest.raises(SumIncomplete, match=f"missing from {', '.join(map(str, sorted(silent)))}; if they"):
                server.shares_for(min(answering))
            again = session.run(session.context(round=number, attempt=2), live=frozenset(answering))
            assert again.total().tolist() == session.expected(answering)


def test_in_an_active_session_pair_keys_come_from_those_who_have_endorsed(session_of):
    """Seven clients: one does not upload, another one endorses late, and five open."""
    session = session_of(7, active=True)
    server = session.server(session.context())
    for i in range(6):
        server.add(i, session.upload(i, server.context, session.everyone))
    server.close()
    for i in range(5):
        session.endorse(i, server)
    with pytest.raises(SumIncomplete, match="keys of pairs with dropped clients are missing from 0, 1, 2, 3, 4, 5"):
        server.shares_for(0)
    with pytest.raises(SumRefused, match="endorsed first"):
        session.recover(5, server)
    session.endorse(5, server)
    for i in range(6):
        session.recover(i, server)
    for i in range(5):
        session.unmask(i, server)
    assert server.total().tolist() == session.expected(range(6))


@pytest.mark.parametrize("n", [4, 7])
def test_an_active_session_sums_exactly(session_of, n):
    session = session_of(n, active=True)
    for number, (uploading, opening) in enumerate(patterns(n, session.terms.threshold), start=1):
        server = session.run(session.context(round=number), uploading=uploading, opening=opening)
        assert server.total().tolist() == session.expected(uploading)


@pytest.mark.parametrize("n", range(2, 8))
def test_below_the_threshold_nothing_is_unmasked(session_of, n):
    session = session_of(n)
    least = session.terms.threshold
    context = session.context()
    server = session.server(context)
    for number in range(least - 1):
        server.add(number, session.upload(number, context, session.everyone))
    with pytest.raises(SumIncomplete, match=rf"{least - 1} clients are survivors, and at least {least} must be"):
        server.close()
    server = session.run(session.context(round=2), opening=range(least - 1))
    with pytest.raises(SumIncomplete, match="cannot be rebuilt"):
        server.total()
    assert set(server.short.values()) == {1}


def test_a_graph_that_is_not_complete_sums_exactly(session_of):
    terms = SumTerms(n_clients=12, degree=6, threshold=4, min_survivors=9)
    session = session_of(terms=terms)
    for number, gone in enumerate([set(), {0}, {3, 7}, {0, 1, 2}, {9, 10, 11}], start=1):
        server = session.run(session.context(round=number), uploading=session.everyone - gone)
        assert server.total().tolist() == session.expected(session.everyone - gone)
        assert all(session.roster.neighbours(i, terms) & gone for i in server.uploaded if i in server._recover)


def test_clients_that_dropped_out_come_back_in_a_later_attempt_or_round(session_of):
    session = session_of(5)
    abandoned = session.server(session.context())
    for number in range(4):
        abandoned.add(number, session.upload(number, abandoned.context, session.everyone))
    abandoned.close()
    for number in range(2):
        session.recover(number, abandoned)
    with pytest.raises(SumIncomplete, match=r"missing from 2, 3; if they do not come, begin another attempt"):
        abandoned.shares_for(0)
    again = session.run(session.context(attempt=2), live=frozenset({0, 1, 4}))
    assert again.total().tolist() == session.expected({0, 1, 4})
    later = session.run(session.context(round=2))
    assert later.total().tolist() == session.expected(range(5))


def test_the_length_may_be_zero_or_beyond_a_chunk(session_of):
    session = session_of(3)
    for number, length in enumerate((0, 1, (1 << 15) + 5), start=1):
        context = session.context(round=number)
        server = session.server(context, length=length)
        values = [np.full(length, 2**63 + i, dtype=np.uint64) for i in range(3)]
        for i in range(2):
            server.add(i, session.upload(i, context, session.everyone, values[i]))
        server.close()
        for i in range(2):
            session.recover(i, server)
        for i in range(2):
            session.unmask(i, server)
        assert server.total().tolist() == [1] * length  # 2**64 + 0 + 1


def test_every_order_of_messages_gives_the_sum(session_of):
    """Three clients of which one drops out or none: all orders within each step, as a server may receive them."""
    session = session_of(3)
    number = 0
    for gone in (set(), {0}, {1}, {2}):
        up = sorted(session.everyone - gone)
        for first in itertools.permutations(up):
            for second in itertools.permutations(up):
                number += 1
                context = session.context(round=number)
                server = session.server(context)
                for i in first:
                    server.add(i, session.upload(i, context, session.everyone))
                server.close()
                for i in second:
                    if i in server.to_recover:
                        session.recover(i, server)
                for i in reversed(first):
                    session.unmask(i, server)
                assert server.total().tolist() == session.expected(up)
    assert number == 36 + 3 * 4


def test_every_interleaving_of_messages_is_taken_or_refused_by_name(session_of):
    """All orders of the messages of a small system, each of them sent twice: never a wrong sum."""
    session = session_of(3)
    context = session.context()
    uploads = {i: session.upload(i, context, session.everyone) for i in range(3)}
    kinds = [("add", 0), ("add", 2), ("close", 0), ("recover", 0), ("recover", 1), ("open", 0), ("open", 1)]
    totals = 0
    for sequence in itertools.permutations(kinds):
        server = session.server(context)
        for kind, i in (("add", 1), *sequence, *sequence):
            try:
                if kind == "add":
                    server.add(i, uploads[i])
                elif kind == "close":
                    server.close()
                elif kind == "recover":
                    server.add_pair_keys(i, session.clients[i].pair_keys(context, server.live, server.uploaded))
                else:
                    shares = server.shares_for(i)
                    server.add_opened(i, session.clients[i].opened(context, server.live, server.uploaded, shares))
            except (SumIncomplete, SumRefused):
                continue
        try:
            total = server.total()
        except SumIncomplete:
            continue
        totals += 1
        assert total.tolist() == session.expected(server.uploaded)
    assert totals > 1000


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_stream_with_dropouts_and_repeats_sums_exactly_or_says_what_is_missing(session_of, data):
    n = data.draw(st.integers(2, 9), label="n")
    session = session_of(n, seed=data.draw(st.integers(0, 3)))
    context = session.context()
    live = session.everyone
    server = session.server(context)
    uploads = {i: session.upload(i, context, live) for i in range(n)}
    arriving = data.draw(
        st.lists(st.sampled_from(range(n)), max_size=3 * n), label="uploads, repeated and in any order"
    )
    taken = set()
    for i in arriving:
        if i in taken:
            with pytest.raises(SumRefused, match="repeated"):
                server.add(i, uploads[i])
        else:
            server.add(i, uploads[i])
            taken.add(i)
    if len(taken) < session.terms.threshold:
        with pytest.raises(SumIncomplete):
            server.close()
        return
    server.close()
    for i in set(range(n)) - taken:
        with pytest.raises(SumRefused, match="late"):
            server.add(i, uploads[i])
    for i in data.draw(st.permutations(sorted(server.to_recover))):
        session.recover(i, server)
    opening = data.draw(st.lists(st.sampled_from(sorted(taken)), unique=True), label="opening")
    for i in opening:
        session.unmask(i, server)
    if len(opening) < session.terms.threshold:
        with pytest.raises(SumIncomplete, match="cannot be rebuilt"):
            server.total()
    else:
        assert server.total().tolist() == session.expected(taken)
        assert server.total().tolist() == session.expected(taken), "asked twice"


class TestServerRefuses:
    @pytest.fixture
    def session(self, session_of):
        return session_of(4)

    @pytest.fixture
    def half(self, session):
        """A server with the uploads of 0, 1 and 2."""
        server = session.server(session.context())
        for i in range(3):
            server.add(i, session.upload(i, server.context, session.everyone))
        return server

    @pytest.mark.parametrize("break_it", ["length", "dtype", "shape", "list", "missing", "extra", "short", "text"])
    def test_malformed_uploads(self, session, half, break_it):
        good = session.upload(3, half.context, session.everyone)
        shares, values = dict(good.shares), good.values
        match break_it:
            case "length":
                values = values[:-1]
            case "dtype":
                values = values.astype(np.int64)
            case "shape":
                values = values.reshape(1, 3)
            case "list":
                values = values.tolist()
            case "missing":
                del shares[0]
            case "extra":
                shares[4] = shares[0]
            case "short":
                shares[0] = shares[0][:-1]
            case "text":
                shares[0] = "x" * 44
        with pytest.raises(SumRefused, match=r"upload of client 3 in round 1, attempt 1 is refused"):
            half.add(3, Upload(values=values, shares=shares))
        half.add(3, good)
        half.close()
        for i in range(4):
            session.unmask(i, half)
        assert half.total().tolist() == session.expected(range(4))

    def test_strangers_and_late_and_repeated_messages(self, session, half):
        late = session.upload(3, half.context, session.everyone)
        with pytest.raises(SumRefused, match="it was not asked"):
            half.add(4, late)
        with pytest.raises(SumRefused, match="it is repeated"):
            half.add(0, late)
        with pytest.raises(SumIncomplete, match="uploads of 3 are waited for"):
            half.shares_for(0)
        half.close()
        with pytest.raises(SumRefused, match="it is late"):
            half.add(3, late)
        keys = session.clients[0].pair_keys(half.context, half.live, half.uploaded)
        with pytest.raises(SumRefused, match="about the clients that it should be about"):
            half.add_pair_keys(0, {**keys, 1: bytes(32)})
        with pytest.raises(SumRefused, match="32 bytes"):
            half.add_pair_keys(0, {3: bytes(31)})
        with pytest.raises(SumRefused, match="was not asked"):
            half.add_pair_keys(3, keys)
        for i in range(3):
            session.recover(i, half)
        with pytest.raises(SumRefused, match="repeated"):
            half.add_pair_keys(0, keys)
        with pytest.raises(SumRefused, match="did not survive"):
            half.shares_for(3)
        with pytest.raises(SumRefused, match="no element of the field"):
            half.add_opened(0, {1: b"\xff" * 16})
        with pytest.raises(SumRefused, match="16 bytes"):
            half.add_opened(0, {1: bytes(17)})
        with pytest.raises(SumRefused, match="about the clients"):
            half.add_opened(0, {3: bytes(16)})
        for i in range(3):
            session.unmask(i, half)
        with pytest.raises(SumRefused, match="repeated"):
            half.add_opened(0, {})
        assert half.total().tolist() == session.expected(range(3))

    def test_live_clients_that_did_not_join_or_are_too_few(self, session):
        with pytest.raises(SumRefused, match="did not join: 7"):
            session.server(session.context(), live={0, 1, 2, 7})
        with pytest.raises(SumIncomplete, match="2 clients are live, and at least 3 must be; missing are 2, 3"):
            session.server(session.context(), live={0, 1})


def test_a_damaged_share_is_left_out_and_the_others_suffice(session_of):
    session = session_of(5)
    server = session.server(session.context())
    for i in range(5):
        upload = session.upload(i, server.context, session.everyone)
        if i == 2:
            shares = {**upload.shares, 4: upload.shares[4][:-1] + bytes([upload.shares[4][-1] ^ 1])}
            upload = Upload(values=upload.values, shares=shares)
        server.add(i, upload)
    server.close()
    opened = session.clients[4].opened(server.context, server.live, server.uploaded, server.shares_for(4))
    assert set(opened) == {0, 1, 3, 4}
    for i in range(5):
        session.unmask(i, server)
    assert server.total().tolist() == session.expected(range(5))
