"""The rules of a client's answers, beside a slow reading of them over whole histories."""

import hashlib
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.errors import InvalidParameter, SumRefused
from ledgerwood.secure_aggregation import AnswerBook, SumAnswer, members_digest

ALL = members_digest({0, 1, 2})
TWO = members_digest({0, 1})
OTHER = members_digest({0, 2})


def answer(kind, round=1, attempt=1, live=ALL, survivors=TWO):  # noqa: A002
    return SumAnswer(
        round=round, attempt=attempt, kind=kind, live=live, survivors="" if kind == "upload" else survivors
    )


def book(*answers, active=False):
    found = AnswerBook(active=active)
    for each in answers:
        found = found.after(each)
    return found


ORDER = {"upload": 0, "endorse": 1, "recover": 2, "unmask": 3}


def allowed(history, new, active):
    """The rules, asked of the whole history and not of its last entry."""
    if new.kind == "endorse" and not active:
        return False
    same = [old for old in history if (old.round, old.attempt) == (new.round, new.attempt)]
    if any(old.kind == new.kind for old in same):
        return False
    if any((old.round, old.attempt) > (new.round, new.attempt) for old in history):
        return False
    if any(old.kind == "unmask" and old.round == new.round for old in history):
        return False
    if any(ORDER[old.kind] > ORDER[new.kind] for old in same):
        return False
    kinds = {old.kind for old in same}
    if new.kind != "upload" and "upload" not in kinds:
        return False
    if any(old.live != new.live for old in same):
        return False
    if any(old.survivors not in ("", new.survivors) for old in same):
        return False
    if new.kind == "recover" and new.survivors == new.live:
        return False
    return not (active and new.kind in ("recover", "unmask") and "endorse" not in kinds)


EVERY = [
    answer(kind, number, attempt, live, survivors)
    for kind in ORDER
    for number in (1, 2)
    for attempt in (1, 2)
    for live in (ALL, TWO)
    for survivors in (TWO, OTHER)
    if kind != "upload" or survivors == TWO
]


@pytest.mark.parametrize("active", [False, True])
def test_every_reachable_history_of_two_rounds_obeys_the_rules(active):
    """All histories that the book admits, each followed by every answer there is."""
    seen, frontier = 0, [()]
    while frontier:
        history = frontier.pop()
        here = book(*history, active=active)
        for new in EVERY:
            seen += 1
            if allowed(history, new, active):
                assert here.after(new).last == new
                if len(history) < 4:
                    frontier.append((*history, new))
            else:
                with pytest.raises(SumRefused):
                    here.after(new)
    assert seen > 1000


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(EVERY), max_size=30), st.booleans())
def test_any_stream_of_requests_is_answered_by_the_rules(stream, active):
    here, history = AnswerBook(active=active), ()
    for new in stream:
        if allowed(history, new, active):
            here, history = here.after(new), (*history, new)
        else:
            with pytest.raises(SumRefused):
                here.after(new)
        assert here.last == (history[-1] if history else None)


@pytest.mark.parametrize(
    ("before", "asked", "said"),
    [
        ([], answer("unmask"), "has not uploaded in this attempt"),
        ([answer("upload")], answer("upload"), "already uploaded"),
        ([answer("upload"), answer("recover")], answer("recover"), "already answered recover"),
        ([answer("upload"), answer("unmask")], answer("recover"), "was unmasked"),
        ([answer("upload"), answer("unmask")], answer("upload", attempt=2), "its survivors are final"),
        ([answer("upload", attempt=2)], answer("upload", attempt=1), "cannot go back"),
        ([answer("upload", round=2)], answer("upload", round=1, attempt=9), "cannot go back"),
        ([answer("upload"), answer("recover")], answer("unmask", survivors=OTHER), "other survivors"),
        ([answer("upload")], answer("unmask", live=TWO), "other live clients"),
        ([answer("upload")], answer("recover", survivors=ALL), "nobody dropped out"),
        ([answer("upload")], answer("endorse"), "active sessions only"),
    ],
)
def test_a_refusal_says_which_rule(before, asked, said):
    with pytest.raises(SumRefused, match=said):
        book(*before).after(asked)


def test_an_active_session_opens_nothing_without_an_endorsement():
    for kind in ("recover", "unmask"):
        with pytest.raises(SumRefused, match="endorsed first"):
            book(answer("upload"), active=True).after(answer(kind))
    book(answer("upload"), answer("endorse"), answer("recover"), answer("unmask"), active=True)


def test_a_refusal_leaves_the_book_as_it_was():
    here = book(answer("upload"))
    with pytest.raises(SumRefused):
        here.after(answer("upload"))
    assert here == book(answer("upload"))


def test_the_digest_of_members_is_of_a_set():
    by_hand = hashlib.sha256(b"ledgerwood sum members 1|" + b"".join(n.to_bytes(8, "big") for n in (3, 9, 300)))
    assert members_digest([300, 3, 9, 3]) == by_hand.hexdigest()
    digests = {members_digest(found) for n in range(6) for found in itertools.combinations(range(5), n)}
    assert len(digests) == 2**5


@pytest.mark.parametrize(
    "change",
    [
        {"round": 0}, {"attempt": True}, {"attempt": 1 << 63}, {"kind": "open"}, {"live": ""}, {"live": "g" * 64},
        {"survivors": TWO, "kind": "upload"}, {"survivors": ""}, {"survivors": None},
    ],
)  # fmt: skip
def test_a_malformed_answer_is_no_answer(change):
    fields = {"round": 1, "attempt": 1, "kind": "unmask", "live": ALL, "survivors": TWO} | change
    with pytest.raises(InvalidParameter):
        SumAnswer(**fields)


def test_members_are_numbers():
    for bad in ([-1], [True], [1 << 63], ["1"]):
        with pytest.raises(InvalidParameter):
            members_digest(bad)
