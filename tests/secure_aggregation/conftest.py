"""A session in one process, with randomness from a seed: every run sends the same bytes."""

import hashlib

import numpy as np
import pytest

from ledgerwood.secure_aggregation import (
    AnswerBook,
    ClientRegistry,
    ClientSums,
    Roster,
    ServerSum,
    SessionKeys,
    SumContext,
    SumTerms,
)

PLAN = hashlib.sha256(b"plan").digest()


def seeded(*parts):
    """32 bytes that follow from a seed: the tests' source of randomness."""
    return hashlib.sha256(repr(parts).encode()).digest()


class Session:
    """All parties of a session, and the ordinary ways through its protocol."""

    def __init__(self, terms, session=b"session", seed=0, registered=None):
        self.terms, self.name, self.seed, self.n = terms, session, seed, terms.n_clients
        self.keys = [SessionKeys.derived(seeded(seed, "identity", i), session) for i in range(self.n)]
        self.registry = ClientRegistry(keys=tuple(keys.verifying_key for keys in self.keys)) if terms.active else None
        signatures = tuple(keys.signature for keys in self.keys) if terms.active else ()
        self.roster = Roster(session=session, keys=tuple(keys.public for keys in self.keys), signatures=signatures)
        self.clients = [self.client(i) for i in range(self.n)]
        self.books = [AnswerBook(active=terms.active) for _ in range(self.n)]
        self.everyone = frozenset(range(self.n))

    def client(self, number, roster=None):
        return ClientSums(
            terms=self.terms,
            roster=roster or self.roster,
            number=number,
            keys=self.keys[number],
            registry=self.registry,
        )

    def context(self, round=1, attempt=1, plan=PLAN):  # noqa: A002
        return SumContext(session=self.name, plan=plan, round=round, attempt=attempt)

    def server(self, context, live=None, length=3):
        live = self.everyone if live is None else live
        return ServerSum(terms=self.terms, roster=self.roster, context=context, live=live, length=length)

    def values(self, number, length=3, seed=0):
        stream = b"".join(seeded(self.seed, seed, "values", number, i) for i in range(length // 4 + 1))
        return np.frombuffer(stream, dtype="<u8")[:length].astype(np.uint64)

    def expected(self, members, length=3, seed=0):
        """The sum in Python's integers."""
        rows = [self.values(number, length, seed).tolist() for number in members]
        return [sum(column) % 2**64 for column in zip(*rows, strict=True)] if rows else [0] * length

    def note(self, number, context, kind, live, survivors=None):
        """Puts an answer into the client's book, as whoever runs a client has to do before it answers."""
        self.books[number] = self.books[number].after(self.clients[number].answer(context, kind, live, survivors))

    def upload(self, number, context, live, values=None, salt=0):
        self.note(number, context, "upload", live)
        values = self.values(number) if values is None else values
        randomness = seeded(self.seed, "upload", number, context.round, context.attempt, salt)
        return self.clients[number].masked(context, live, values, randomness)

    def endorse(self, number, server):
        self.note(number, server.context, "endorse", server.live, server.uploaded)
        server.add_endorsement(number, self.clients[number].endorsed(server.context, server.live, server.uploaded))

    def recover(self, number, server):
        self.note(number, server.context, "recover", server.live, server.uploaded)
        client = self.clients[number]
        server.add_pair_keys(
            number, client.pair_keys(server.context, server.live, server.uploaded, server.endorsements)
        )

    def unmask(self, number, server):
        shares = server.shares_for(number)
        self.note(number, server.context, "unmask", server.live, server.uploaded)
        client = self.clients[number]
        server.add_opened(
            number, client.opened(server.context, server.live, server.uploaded, shares, server.endorsements)
        )

    def run(self, context, live=None, uploading=None, opening=None):
        """Runs an attempt in which these clients upload and those open, and returns the server's side."""
        live = self.everyone if live is None else live
        server = self.server(context, live)
        for number in sorted(live if uploading is None else uploading):
            server.add(number, self.upload(number, context, live))
        survivors = server.close()
        if self.terms.active:
            for number in sorted(survivors):
                self.endorse(number, server)
        for number in sorted(server.to_recover):
            self.recover(number, server)
        for number in sorted(survivors if opening is None else opening):
            self.unmask(number, server)
        return server


@pytest.fixture(scope="session")
def session_of():
    """Makes a session: `session_of(5)` of a complete graph, or of other terms."""

    def made(n=None, *, terms=None, **options):
        names = {name: options.pop(name) for name in ("session", "seed") if name in options}
        return Session(terms or SumTerms.for_clients(n, **options), **names)

    return made
