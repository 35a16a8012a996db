"""What a server gets that deviates: refusals, and in an active session nothing of a client's vector."""

import itertools

import pytest

from ledgerwood.errors import InvalidParameter, SumIncomplete, SumRefused
from ledgerwood.secure_aggregation import (
    ClientRegistry,
    ClientSums,
    Roster,
    SessionKeys,
    SumContext,
    SumTerms,
    members_digest,
)


class TestClientRefuses:
    @pytest.fixture
    def session(self, session_of):
        return session_of(5)

    def asked(self, session, live=None, survivors=None, context=None, number=0):
        """Every method that takes these sets, each of which must refuse; how often they did, and why."""
        live = session.everyone if live is None else live
        context = context or session.context()
        client, reasons = session.clients[number], []
        if survivors is None:
            calls = [
                lambda: client.answer(context, "upload", live),
                lambda: client.masked(context, live, session.values(0), bytes(32)),
            ]
        else:
            calls = [
                lambda: client.answer(context, "recover", live, survivors),
                lambda: client.answer(context, "unmask", live, survivors),
                lambda: client.pair_keys(context, live, survivors),
                lambda: client.opened(context, live, survivors, {}),
                lambda: client.endorsed(context, live, survivors),
            ]
        for call in calls:
            with pytest.raises(SumRefused) as caught:
                call()
            reasons.append(str(caught.value))
        assert len(set(reasons)) == 1
        return reasons[0]

    def test_sets_that_cannot_be(self, session):
        assert "did not join: 5, 9" in self.asked(session, live={0, 1, 2, 5, 9})
        assert "this client, 0, is not among the live clients" in self.asked(session, live={1, 2, 3, 4})
        assert "2 clients are live clients, and at least 3 must be" in self.asked(session, live={0, 1})
        assert "survivors that were not live: 4" in self.asked(session, live={0, 1, 2, 3}, survivors={0, 1, 4})
        assert "this client, 0, is not among the survivors" in self.asked(session, survivors={1, 2, 3})
        assert "2 clients are survivors, and at least 3 must be" in self.asked(session, survivors={0, 1})

    def test_too_few_neighbours_on_a_ring(self, session_of):
        session = session_of(terms=SumTerms(n_clients=12, degree=4, threshold=3))
        strangers = session.everyone - session.roster.neighbours(0, session.terms)
        assert "1 of this client and its neighbours are among the live clients" in self.asked(session, live=strangers)
        near = min(session.roster.neighbours(0, session.terms))
        left = strangers | {near}
        assert "2 of this client and its neighbours are among the survivors" in self.asked(session, survivors=left)

    def test_fewer_survivors_than_the_ring_needs(self, session_of):
        session = session_of(terms=SumTerms(n_clients=12, degree=4, threshold=3, min_survivors=11))
        gone = min(session.everyone - session.roster.holders(0, session.terms))
        other = max(session.everyone - session.roster.holders(0, session.terms))
        left = session.everyone - {gone, other}
        assert "10 clients are survivors, and at least 11 must be" in self.asked(session, survivors=left)
        session.clients[0].pair_keys(session.context(), session.everyone, session.everyone - {gone})

    def test_another_session(self, session):
        context = SumContext(session=b"other", plan=b"plan", round=1)
        assert "another session" in self.asked(session, context=context)
        assert "another session" in self.asked(session, survivors=session.everyone, context=context)

    def test_shares_of_clients_that_did_not_survive_or_are_no_neighbours(self, session, session_of):
        context, live = session.context(), session.everyone
        uploads = {i: session.upload(i, context, live) for i in range(5)}
        shares = {i: uploads[i].shares[0] for i in range(5)}
        with pytest.raises(SumRefused, match="did not survive or are no neighbours: 4"):
            session.clients[0].opened(context, live, {0, 1, 2, 3}, shares)
        ring = session_of(terms=SumTerms(n_clients=12, degree=4, threshold=3))
        far = min(ring.everyone - ring.roster.holders(0, ring.terms))
        with pytest.raises(SumRefused, match="no neighbours"):
            ring.clients[0].opened(ring.context(), ring.everyone, ring.everyone, {far: bytes(44)})

    def test_a_roster_without_its_key(self, session):
        keys = session.roster.keys
        for bad in ((keys[1], keys[0], *keys[2:]), (b"", *keys[1:]), keys[:-1]):
            with pytest.raises(SumRefused, match=r"this client's key at its number 0|the terms say 5"):
                session.client(0, Roster(session=b"session", keys=bad))
        with pytest.raises(SumRefused, match="does not hold this client's key"):
            ClientSums(terms=session.terms, roster=session.roster, number=5, keys=session.keys[0])

    def test_values_and_randomness_of_another_kind(self, session):
        client, context, live = session.clients[0], session.context(), session.everyone
        values = session.values(0)
        for bad in (values.astype("int64"), values.reshape(1, 3), values.tolist(), values.astype(">u8")):
            with pytest.raises(InvalidParameter, match="uint64 with one axis"):
                client.masked(context, live, bad, bytes(32))
        for bad in (bytes(31), None, "x" * 32):
            with pytest.raises(InvalidParameter, match="randomness"):
                client.masked(context, live, values, bad)

    def test_a_registry_without_an_active_session(self, session):
        registry = ClientRegistry(keys=tuple(keys.verifying_key for keys in session.keys))
        with pytest.raises(InvalidParameter, match="registry"):
            ClientSums(terms=session.terms, roster=session.roster, number=0, keys=session.keys[0], registry=registry)

    def test_an_answer_names_the_sets(self, session):
        answer = session.clients[0].answer(session.context(3, 2), "unmask", session.everyone, {0, 1, 2})
        assert (answer.round, answer.attempt, answer.kind) == (3, 2, "unmask")
        assert (answer.live, answer.survivors) == (members_digest(range(5)), members_digest({0, 1, 2}))
        with pytest.raises(SumRefused, match="with every kind of answer but the upload"):
            session.clients[0].answer(session.context(), "upload", session.everyone, session.everyone)


class TestKeysAreBound:
    """Shares open, and masks cancel, in their own session, plan, round, attempt, roster and terms only."""

    def test_shares_of_another_attempt_do_not_open(self, session_of):
        session = session_of(4)
        live, home = session.everyone, session.context(2, 2)
        uploads = {i: session.clients[i].masked(home, live, session.values(i), bytes([i]) * 32) for i in range(4)}
        shares = {i: uploads[i].shares[0] for i in range(4)}
        assert set(session.clients[0].opened(home, live, live, shares)) == {0, 1, 2, 3}
        for other in (session.context(1, 2), session.context(2, 1), session.context(2, 2, plan=b"another")):
            assert session.clients[0].opened(other, live, live, shares) == {}
        assert session.clients[1].opened(home, live, live, {2: uploads[2].shares[0]}) == {}, "sealed for another client"
        assert session.clients[0].opened(home, live, live, {2: uploads[1].shares[0]}) == {}, "sealed by another client"

    def test_what_is_revealed_of_a_dropped_client_is_of_one_attempt(self, session_of):
        session = session_of(4)
        live, left = session.everyone, {0, 1, 2}
        contexts = [session.context(r, a, plan) for r, a, plan in itertools.product((1, 2), (1, 2), (b"one", b"two"))]
        found = [session.clients[0].pair_keys(context, live, left)[3] for context in contexts]
        assert len(set(found)) == len(contexts)
        assert session.clients[3].pair_keys(contexts[0], live, {1, 2, 3})[0] == found[0], "one key, both ends"

    def test_clients_with_two_rosters_have_no_mask_in_common(self, session_of):
        """A server that gives one client an invented neighbour learns nothing from its own view of the others."""
        session = session_of(4)
        invented = SessionKeys.derived(b"x" * 32, b"session")
        forged = Roster(session=b"session", keys=(*session.roster.keys[:3], invented.public))
        one = session.client(0, forged).pair_keys(session.context(), session.everyone, {0, 1, 2})
        assert one.keys() == {3}
        two = session.client(0, forged)
        assert two._mask_key(two._bound(session.context()), 1) != session.clients[1]._mask_key(
            session.clients[1]._bound(session.context()), 0
        )

    def test_poor_randomness_still_gives_each_attempt_its_own_secrets(self, session_of):
        session = session_of(3)
        first, second, again = (
            session.clients[0].masked(context, session.everyone, session.values(0), bytes(32))
            for context in (session.context(1), session.context(2), session.context(1))
        )
        assert first.values.tolist() == again.values.tolist() != second.values.tolist()
        assert not {text[:12] for text in first.shares.values()} & {text[:12] for text in second.shares.values()}
        other = session.clients[0].masked(session.context(1), session.everyone, session.values(0), b"1" * 32)
        assert other.values.tolist() != first.values.tolist()


class TestActive:
    """A server that may do anything, with fewer than a third of the clients on its side."""

    @pytest.fixture
    def session(self, session_of):
        return session_of(7, active=True)  # threshold 5: two may collude

    def uploaded(self, session, live=None):
        live = session.everyone if live is None else live
        context = session.context()
        return context, {i: session.upload(i, context, live) for i in sorted(live)}

    def signed(self, session, context, members, live, survivors):
        return {i: session.clients[i].endorsed(context, live, survivors) for i in members}

    def test_an_invented_client_is_refused(self, session):
        fake = SessionKeys.derived(b"f" * 32, b"session")
        keys = (*session.roster.keys[:6], fake.public)
        for signature in (fake.signature, session.keys[6].signature, bytes(64)):
            roster = Roster(session=b"session", keys=keys, signatures=(*session.roster.signatures[:6], signature))
            with pytest.raises(SumRefused, match="client 6 of the registry has not signed its key"):
                session.client(0, roster)
        with pytest.raises(SumRefused, match="roster is not signed"):
            session.client(0, Roster(session=b"session", keys=session.roster.keys))
        more = Roster(
            session=b"session", keys=(*session.roster.keys, fake.public),
            signatures=(*session.roster.signatures, fake.signature),
        )  # fmt: skip
        with pytest.raises(SumRefused, match="8 clients"):
            session.client(0, more)
        with pytest.raises(SumRefused, match="and the registry 7"):
            more.check(session.registry)

    def test_a_key_of_another_session_is_refused(self, session):
        old = SessionKeys.derived(b"o" * 32, b"an earlier session")
        registry = ClientRegistry(keys=(*session.registry.keys[:6], old.verifying_key))
        roster = Roster(
            session=b"session", keys=(*session.roster.keys[:6], old.public),
            signatures=(*session.roster.signatures[:6], old.signature),
        )  # fmt: skip
        with pytest.raises(SumRefused, match="client 6 of the registry has not signed"):
            roster.check(registry)

    def test_absent_clients_need_no_signature(self, session):
        roster = Roster(
            session=b"session", keys=(*session.roster.keys[:6], b""), signatures=(*session.roster.signatures[:6], b"")
        )
        roster.check(session.registry)
        client = session.client(0, roster)
        with pytest.raises(SumRefused, match="did not join: 6"):
            client.answer(session.context(), "upload", session.everyone)
        client.answer(session.context(), "upload", session.everyone - {6})

    def test_two_views_of_the_survivors_get_nothing(self, session):
        """All ways to show two sets of survivors to the five honest clients, while two colluders sign both."""
        context, _ = self.uploaded(session)
        live, colluders, honest, unmasked = session.everyone, {5, 6}, set(range(5)), set()
        one, two = live, live - {0}  # does client 0 belong to the sum?
        for size in range(6):
            for shown_one in map(set, itertools.combinations(sorted(honest), size)):
                shown_two = honest - shown_one - {0}
                signatures_one = self.signed(session, context, shown_one | colluders, live, one)
                signatures_two = self.signed(session, context, shown_two | colluders - {0}, live, two)
                opened = []
                for name, members, view, signatures in (
                    ("one", shown_one, one, signatures_one), ("two", shown_two, two, signatures_two),
                ):  # fmt: skip
                    for i in members:
                        try:
                            session.clients[i].pair_keys(context, live, view, signatures)
                            session.clients[i].opened(context, live, view, {}, signatures)
                            opened.append(name)
                        except SumRefused as refusal:
                            assert "have endorsed this set of survivors" in str(refusal)
                assert len(set(opened)) <= 1, "no two views are both unmasked"
                unmasked |= set(opened)
        assert unmasked == {"one", "two"}, "but either may be"

    def test_forged_and_borrowed_endorsements_do_not_count(self, session):
        context, _ = self.uploaded(session)
        live, left = session.everyone, session.everyone - {6}
        good = self.signed(session, context, range(6), live, left)
        client = session.clients[0]
        client.pair_keys(context, live, left, good)
        four = {i: good[i] for i in range(4)}
        bad = [
            None, {}, four, {**four, 4: good[3]}, {**four, 4: bytes(64)}, {**four, 4: None}, {**four, 6: good[4]},
            {**four, 4: self.signed(session, session.context(2), [4], live, left)[4]},
            {**four, 4: self.signed(session, session.context(1, 2), [4], live, left)[4]},
            {**four, 4: self.signed(session, session.context(plan=b"other"), [4], live, left)[4]},
            {**four, 4: self.signed(session, context, [4], live, live)[4]},
            {**four, 4: self.signed(session, context, [4], live - {5}, left - {5})[4]},
        ]  # fmt: skip
        for endorsements in bad:
            with pytest.raises(SumRefused, match="4 survivors have endorsed|0 survivors have endorsed"):
                client.pair_keys(context, live, left, endorsements)
            with pytest.raises(SumRefused, match="have endorsed this set"):
                client.opened(context, live, left, {}, endorsements)

    def test_both_kinds_about_one_client_are_refused_by_the_book(self, session):
        """Keys of pairs with client 6 (it dropped out) and shares of its self-mask (it survived): never both."""
        context, _ = self.uploaded(session)
        live, left = session.everyone, session.everyone - {6}
        for i in range(6):
            session.note(i, context, "endorse", live, left)
            session.note(i, context, "recover", live, left)
            for view in (live, live - {i - 1 if i else 5}):
                with pytest.raises(SumRefused, match="other survivors than recover"):
                    session.note(i, context, "unmask", live, view)
            session.note(i, context, "unmask", live, left)
            with pytest.raises(SumRefused, match="was unmasked"):
                session.note(i, context, "recover", live, live - {i - 1 if i else 5})

    def test_a_replayed_round_and_a_second_unmasking_are_refused(self, session):
        server = session.run(session.context())
        assert server.total().tolist() == session.expected(range(7))
        for kind, survivors in (("upload", None), ("endorse", session.everyone), ("unmask", session.everyone)):
            with pytest.raises(SumRefused, match="was unmasked"):
                session.note(0, session.context(), kind, session.everyone, survivors)
        with pytest.raises(SumRefused, match="its survivors are final"):
            session.note(0, session.context(attempt=2), "upload", session.everyone)
        session.note(0, session.context(round=2), "upload", session.everyone)
        with pytest.raises(SumRefused, match="cannot go back"):
            session.note(0, session.context(round=1, attempt=9), "upload", session.everyone)

    def test_two_attempts_of_one_round_cannot_both_be_unmasked(self, session):
        """The five that answer the first unmasking refuse the second attempt, which needs five, and two are left."""
        first = session.run(session.context(), opening=range(5))
        assert first.total().tolist() == session.expected(range(7))
        with_book = [i for i in range(7) if session.books[i].last.kind != "unmask"]
        assert with_book == [5, 6]
        with pytest.raises(SumIncomplete, match="are live, and at least 5 must be"):
            session.server(session.context(attempt=2), live=with_book)
        for i in range(5):
            with pytest.raises(SumRefused):
                session.upload(i, session.context(attempt=2), session.everyone)

    def test_another_plan_gives_masks_that_do_not_cancel(self, session):
        """Half of the clients are told another plan: what the server can add up is no sum of anybody's values."""
        live = session.everyone
        contexts = [session.context(plan=b"one" if i < 4 else b"two") for i in range(7)]
        server = session.server(contexts[0])
        for i in range(7):
            server.add(i, session.upload(i, contexts[i], live))
        server.close()
        for i in range(7):
            server.add_endorsement(i, session.clients[i].endorsed(contexts[i], live, live))
        for i in range(4):
            with pytest.raises(SumRefused, match="4 survivors have endorsed"):
                session.clients[i].opened(contexts[i], live, live, server.shares_for(i), server.endorsements)
        with pytest.raises(SumIncomplete):
            server.total()

    def test_the_server_asks_for_endorsements_first(self, session):
        context, uploads = self.uploaded(session)
        server = session.server(context)
        for i, upload in uploads.items():
            server.add(i, upload)
        with pytest.raises(SumIncomplete, match="uploads of nobody"):
            server.add_endorsement(0, bytes(64))
        server.close()
        for i in range(4):
            session.endorse(i, server)
        with pytest.raises(SumIncomplete, match=r"4 survivors have endorsed, and 5 must; missing are 4, 5, 6"):
            server.shares_for(0)
        with pytest.raises(SumRefused, match="repeated"):
            server.add_endorsement(0, bytes(64))
        with pytest.raises(SumRefused, match="64 bytes"):
            server.add_endorsement(4, bytes(63))
        session.endorse(4, server)
        assert server.shares_for(0).keys() == session.everyone

    def test_a_server_with_the_registry_refuses_bad_signatures(self, session):
        from ledgerwood.secure_aggregation import ServerSum

        context, uploads = self.uploaded(session)
        server = ServerSum(
            terms=session.terms, roster=session.roster, context=context, live=session.everyone, length=3,
            registry=session.registry,
        )  # fmt: skip
        for i, upload in uploads.items():
            server.add(i, upload)
        server.close()
        with pytest.raises(SumRefused, match="not this client's signature of these survivors"):
            server.add_endorsement(0, session.clients[1].endorsed(context, session.everyone, session.everyone))
        session.endorse(0, server)


def test_registries_hold_different_keys():
    with pytest.raises(InvalidParameter):
        ClientRegistry(keys=(b"a" * 32, b"a" * 32))
    with pytest.raises(InvalidParameter):
        ClientRegistry(keys=(b"a" * 31,))


def test_the_server_s_parts_are_of_one_session(session_of):
    session = session_of(3)
    with pytest.raises(SumRefused, match="not of one session"):
        session.server(SumContext(session=b"other", plan=b"plan", round=1))
