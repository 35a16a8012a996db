"""A client's account in any order of sessions, answers, restarts and kills, against a model of what was acknowledged.

A kill leaves the files as they were after one of the writes of a call, or in the middle of one.
"""

import contextlib
import importlib.util
import re
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ledgerwood.accounting.ledger import DrawEntry, Ledger, jsonl
from ledgerwood.errors import RoundViolation, SumRefused
from ledgerwood.verification import verify_ledger
from ledgerwood.verification.ledgers.answers import read_answers

_SPEC = importlib.util.spec_from_file_location("accounts", Path(__file__).with_name("accounts.py"))
kit = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(kit)
SESSIONS = (bytes(16), bytes([9] * 16))
DRAWS = (kit.FIRST, kit.BOTH, kit.BOTH, kit.SECOND, kit.BOTH, kit.SECOND)  # all of the plan, in some order
KINDS = ("upload", "recover", "unmask")


class Accounts(RuleBasedStateMachine):
    """`sent` has every answer that a caller could have sent: those whose call returned."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.place = Path(self.folder.name)
        self.mine = kit.account(self.place)
        self.joined = set()
        self.sent = {session: [] for session in SESSIONS}
        self.draw = dict.fromkeys(SESSIONS, 0)  # the last one that a question was about
        self.round = dict.fromkeys(SESSIONS, 0)
        self.unsure = set()  # sessions and rounds in which a call was killed
        self.lost = set()  # sessions that a line without its beginning has ended

    def teardown(self):
        self.mine.close()
        self.folder.cleanup()

    @initialize()
    def begins(self):
        self.mine.could_join(kit.terms(session=SESSIONS[0]))

    def ask(self, session, answer, draw):
        """One answer; it counts as sent if the call returns."""
        event = DRAWS[draw - 1]
        question = {}
        if answer.kind == "upload":
            question = {"draw": draw, "event": event, "release": kit.FIRST if event is kit.BOTH else event}
        self.mine.answer(answer, session=session, **question)
        self.sent[session].append((answer.round, answer.attempt, answer.kind, draw))

    def next_upload(self, session):
        self.round[session] += 1
        self.draw[session] += 1
        return kit.upload(self.round[session]), self.draw[session]

    @rule(session=st.sampled_from(SESSIONS))
    def joins(self, session):
        self.mine.join(kit.terms(session=session))
        self.joined.add(session)

    @precondition(lambda self: self.joined)
    @rule(data=st.data())
    def answers_a_new_round(self, data):
        session = data.draw(st.sampled_from(sorted(self.joined)))
        if self.draw[session] == len(DRAWS):
            return
        answer, draw = self.next_upload(session)
        if session in self.lost:
            with pytest.raises(SumRefused, match="counts as given"):
                self.ask(session, answer, draw)
        else:
            self.ask(session, answer, draw)

    @precondition(lambda self: any(self.sent.values()))
    @rule(data=st.data(), kind=st.sampled_from(KINDS), attempt=st.integers(1, 3))
    def answers_in_the_last_round(self, data, kind, attempt):
        session = data.draw(st.sampled_from([session for session in SESSIONS if self.sent[session]]))
        round_, last, done, draw = self.sent[session][-1]
        answer = kit.upload(round_, attempt) if kind == "upload" else kit.further(kind, round_, attempt)
        allowed = (
            session not in self.lost
            and done != "unmask"
            and (attempt > last if kind == "upload" else attempt == last and KINDS.index(kind) > KINDS.index(done))
        )
        if allowed and self.round[session] == round_:
            self.ask(session, answer, draw)
            return
        with contextlib.suppress(SumRefused, RoundViolation):
            self.ask(session, answer, draw)
            assert allowed

    @precondition(lambda self: any(self.sent.values()))
    @rule(data=st.data())
    def nothing_is_sent_again(self, data):
        session = data.draw(st.sampled_from([session for session in SESSIONS if self.sent[session]]))
        round_, attempt, kind, draw = data.draw(st.sampled_from(self.sent[session]))
        answer = kit.upload(round_, attempt) if kind == "upload" else kit.further(kind, round_, attempt)
        before = list(self.sent[session])
        with pytest.raises(SumRefused):
            self.ask(session, answer, draw)
        assert self.sent[session] == before

    @rule()
    def a_new_process_goes_on(self):
        self.mine.close()
        self.mine = kit.account(self.place)

    @precondition(lambda self: self.joined)
    @rule(data=st.data(), at=st.integers(0, 5), cut=st.integers(0, 400))
    def is_killed_in_a_call(self, data, at, cut):
        """The files go back to what they were after some write of the call, or in the middle of it."""
        session = data.draw(st.sampled_from(sorted(self.joined)))
        if self.draw[session] == len(DRAWS) or session in self.lost:
            return
        files = [self.place / f"client.ledger.jsonl{end}" for end in ("", ".answers")]
        moments = [tuple(file.read_bytes() for file in files)]
        real = jsonl._write

        def write(file, data):
            before = tuple(each.read_bytes() for each in files)
            done = real(file, data)
            which = next(index for index, each in enumerate(files) if jsonl.is_at(file, each))
            torn = list(before)
            torn[which] += bytes(data[: min(cut, len(data) - 1)])
            moments.append(tuple(torn))
            moments.append(tuple(each.read_bytes() for each in files))
            return done

        answer, draw = self.next_upload(session)
        jsonl._write = write
        try:
            self.ask(session, answer, draw)
        finally:
            jsonl._write = real
        self.mine.close()
        moment = moments[min(at, len(moments) - 1)]
        if moment != moments[-1]:
            self.sent[session].pop()  # the process was killed before it could send it
            self.unsure.add((session, self.round[session]))
            tail = moment[1].rpartition(b"\n")[2]
            if tail and not re.match(rb'\{"at":\["[0-9a-f]{32}",\d+,\d+,"[a-z]+"\]', tail):
                self.lost |= self.joined_in(moment[1])
        for file, content in zip(files, moment, strict=True):
            file.write_bytes(content)
        self.mine = kit.account(self.place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a draw's line that was cut short
            self.mine.could_join(kit.terms(session=session))

    def joined_in(self, answers):
        return {session for session in SESSIONS if b'"session":"%s"' % session.hex().encode() in answers}

    @invariant()
    def every_answer_that_was_sent_has_its_draw_and_none_is_drawn_twice(self):
        self.mine.could_join(kit.terms(session=SESSIONS[0]))
        with Ledger.open(self.place / "client.ledger.jsonl", shared=True) as ledger:
            entries = ledger.entries
        for session in self.joined:
            (grant,) = (e.index for e in entries if f" {session.hex()} " in getattr(e, "purpose", ""))
            drawn = [
                (int(entry.purpose.rsplit(" ", 1)[1]), entry.event)
                for entry in entries
                if isinstance(entry, DrawEntry) and entry.grant == grant
            ]
            numbers = [number for number, _ in drawn]
            assert numbers == sorted(set(numbers))
            assert {number for *_, number in self.sent[session]} <= set(numbers)
            assert all(event == DRAWS[number - 1] for number, event in drawn)
            assert len({answer[:3] for answer in self.sent[session]}) == len(self.sent[session])

    @invariant()
    def other_code_reads_the_same(self):
        place = self.place / "client.ledger.jsonl"
        opening = verify_ledger(place)
        found = read_answers(Path(f"{place}.answers"), Ledger.open(place, shared=True).entries[0].hash)
        assert opening.grants == len(self.joined)
        for session in self.joined:
            assert found[session.hex()].count >= len(self.sent[session])
            numbers = {number for *_, number in self.sent[session]}
            assert numbers <= set(found[session.hex()].parts)


Accounts.TestCase.settings = settings(
    max_examples=15, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestAccounts = Accounts.TestCase
