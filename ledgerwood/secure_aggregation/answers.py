"""What a client may answer: the rules that keep a server from unmasking one client, as a pure state machine.

A client puts every answer into its book before it sends it. The book needs to know the last answer only, so that it
is small enough to be stored durably, and a client that restarts goes on where it was.
docs/explanation/secure-aggregation.md#answers.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ledgerwood import _validate
from ledgerwood.errors import SumRefused

AnswerKind = Literal["upload", "endorse", "recover", "unmask"]
"""The kinds of answer, in the only order in which one attempt may have them."""
_ORDER: tuple[str, ...] = get_args(AnswerKind)
MOST = 1 << 63
"""Rounds, attempts and client numbers stay below: they are bound into keys as 8 bytes."""
_DIGEST_LETTERS = 64


def members_digest(members: Collection[int]) -> str:
    """Returns the SHA-256 digest of a set of client numbers, as 64 hexadecimal digits.

    It depends on neither the order nor on repetitions. The empty set has a digest, too.

    Raises:
        InvalidParameter: a number that is not a whole number in 0 .. 2**63 - 1.
    """
    numbers = sorted({number_below("client", number, MOST, "client number") for number in members})
    text = b"".join(number.to_bytes(8, "big") for number in numbers)
    return hashlib.sha256(b"ledgerwood sum members 1|" + text).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SumAnswer:
    """One answer of a client to a server, as its book records it. It holds nothing secret.

    Args:
        round: the number of the question in its session, from 1.
        attempt: the number of the attempt at this question, from 1.
        kind: what the client sends: a masked vector, a signature, keys of pairs with dropped clients, opened shares.
        live: `members_digest` of the clients that were asked for an upload.
        survivors: `members_digest` of the clients whose uploads arrived; empty for an upload.

    Raises:
        InvalidParameter: a number below 1, an unknown kind, or a digest of another form.
    """

    round: int
    attempt: int
    kind: AnswerKind
    live: str
    survivors: str = ""

    def __post_init__(self) -> None:
        for name in ("round", "attempt"):
            object.__setattr__(self, name, number_below(name, getattr(self, name), MOST, f"{name}s", minimum=1))
        if self.kind not in _ORDER:
            raise _validate.fail("kind", self.kind, f"one of {', '.join(_ORDER)}", "kind of answer")
        _check_digest("live", self.live)
        if self.kind != "upload":
            _check_digest("survivors", self.survivors)
        elif self.survivors != "":
            raise _validate.fail("survivors", self.survivors, "empty for an upload", "digest")

    @property
    def _attempt_key(self) -> tuple[int, int]:
        return self.round, self.attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBook:
    """The answers that one client gave in one session. Immutable: `after` returns the next book, or refuses.

    The rules, each with its reason in docs/explanation/secure-aggregation.md#answers:

    * Rounds, and attempts within a round, never go back.
    * An attempt begins with an upload. Its kinds come in their order, each at most once.
    * After an unmasking its round is over: the next answer belongs to a later round.
    * All answers of one attempt have the same live clients, and all but the upload the same survivors.
    * Pair keys are given only if somebody dropped out.
    * `active`: pair keys and opened shares need an endorsement first. Otherwise nothing is endorsed.

    Args:
        active: whether the session is secure against an active server (signed keys and endorsements).
        last: the last answer, or None at the beginning of a session.
    """

    active: bool = False
    last: SumAnswer | None = None

    def __post_init__(self) -> None:
        _validate.flag("active", self.active)

    def after(self, answer: SumAnswer) -> "AnswerBook":
        """Returns the book with this answer in it. Whoever stores it durably may then send the answer.

        Raises:
            SumRefused: an answer that the rules forbid; the book stays as it is.
        """
        last = self.last
        if answer.kind == "endorse" and not self.active:
            raise _refused(answer, "survivors are endorsed in active sessions only")
        if last is not None and answer._attempt_key < last._attempt_key:
            raise _refused(answer, f"this client has already answered {_name(last)}; a server cannot go back")
        if last is not None and answer.round == last.round and last.kind == "unmask":
            raise _refused(answer, f"round {last.round} was unmasked: its survivors are final; ask in a later round")
        if answer.kind == "upload":
            self._check_upload(answer)
        else:
            self._check_further(answer)
        return replace(self, last=answer)

    def _check_upload(self, answer: SumAnswer) -> None:
        if self.last is not None and answer._attempt_key == self.last._attempt_key:
            raise _refused(answer, "this client has already uploaded; a new attempt needs a new number")

    def _check_further(self, answer: SumAnswer) -> None:
        last = self.last
        if last is None or answer._attempt_key != last._attempt_key:
            raise _refused(answer, "this client has not uploaded in this attempt")
        if _ORDER.index(answer.kind) <= _ORDER.index(last.kind):
            raise _refused(answer, f"this client has already answered {_name(last)}")
        if answer.live != last.live:
            raise _refused(answer, "it names other live clients than the upload was made for")
        if last.kind != "upload" and answer.survivors != last.survivors:
            raise _refused(answer, f"it names other survivors than {_name(last)} did")
        if answer.kind == "recover" and answer.survivors == answer.live:
            raise _refused(answer, "nobody dropped out, so that no keys of pairs are needed")
        if self.active and answer.kind != "endorse" and last.kind == "upload":
            raise _refused(answer, "an active session has the survivors endorsed first")


def number_below(name: str, value: object, limit: int, unit: str, *, minimum: int = 0) -> int:
    """Returns a whole number in minimum .. limit - 1."""
    number = _validate.count(name, value, unit, minimum=minimum)
    if number >= limit:
        raise _validate.fail(name, number, f"< {limit}", unit)
    return number


def _check_digest(name: str, value: object) -> None:
    if not isinstance(value, str) or len(value) != _DIGEST_LETTERS or set(value) - set("0123456789abcdef"):
        raise _validate.fail(name, value, f"{_DIGEST_LETTERS} hexadecimal digits", "digest")


def _name(answer: SumAnswer) -> str:
    return f"{answer.kind} of round {answer.round}, attempt {answer.attempt}"


def _refused(answer: SumAnswer, reason: str) -> SumRefused:
    return SumRefused(f"{_name(answer)} is refused: {reason}")
