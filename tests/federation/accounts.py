"""A client's account in a test: terms, questions and answers."""

from ledgerwood.accounting import Adjacency, Budget, Composed, PoissonSampled, PrivacyUnit, PureEvent, Repeated
from ledgerwood.federation.owners.account import ClientAccount
from ledgerwood.federation.owners.account_terms import SessionTerms
from ledgerwood.secure_aggregation import SumAnswer, members_digest

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=4.0, delta=1e-5, adjacency=A)
FIRST = PureEvent(epsilon=0.01, adjacency=A)
SECOND = PureEvent(epsilon=0.02, adjacency=A)
BOTH = PoissonSampled(Composed((FIRST, SECOND)), sampling_rate=0.5)
PLAN = Composed((FIRST, Repeated(BOTH, count=3), Repeated(SECOND, count=2)))
MANY = Repeated(FIRST, count=200)
QUESTIONS = ((FIRST, FIRST), (BOTH, SECOND), (Repeated(SECOND, count=2), SECOND))
"""Of rounds 1, 2 and 3: what is drawn, and what is released."""
NUMBERS = (1, 2, 3)
SESSION = bytes(range(16))
ALL, LEFT = members_digest({0, 1, 2}), members_digest({0, 1})


def account(folder, **terms):
    given = {"dataset": "rows", "budget": BUDGET, "unit": PrivacyUnit.ROW, **terms}
    return ClientAccount(folder / "client.ledger.jsonl", **given)


def terms(**other):
    given = {
        "session": SESSION, "plan": b"p" * 32, "event": PLAN, "unit": PrivacyUnit.ROW, "server": "server-1",
        "delta": 0.0,
    }  # fmt: skip
    return SessionTerms(**{**given, **other})


def upload(round_, attempt=1):
    return SumAnswer(round=round_, attempt=attempt, kind="upload", live=ALL)


def further(kind, round_, attempt=1, survivors=LEFT):
    return SumAnswer(round=round_, attempt=attempt, kind=kind, live=ALL, survivors=survivors)


def lines(folder):
    return (folder / "client.ledger.jsonl").read_text().splitlines()


def answers(folder):
    return (folder / "client.ledger.jsonl.answers").read_text().splitlines()
