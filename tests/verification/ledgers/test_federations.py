"""Ledgers of a federation compared: honest pairs agree, and each forged one is told by its name."""

import hashlib
import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.forged_ledgers import chained
from ledgerwood.accounting import Composed, GaussianEvent, Ledger, LedgerRecord, PrivacyUnit, PureEvent, Repeated
from ledgerwood.accounting.events import to_json
from ledgerwood.cli.commands import app
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError
from ledgerwood.verification import verify_federation

_SPEC = importlib.util.spec_from_file_location("accounts", Path(__file__).parents[2] / "federation" / "accounts.py")
kit = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(kit)
FIRST, SECOND, SESSION, terms = kit.FIRST, kit.SECOND, kit.SESSION, kit.terms
BOTH = PureEvent(epsilon=0.03, adjacency=kit.A)
PLAN = Composed((FIRST, Repeated(BOTH, count=3), Repeated(SECOND, count=2)))  # quick to verify
DRAWS = (FIRST, BOTH, BOTH, SECOND)
"""Of the server, out of the plan."""


def drawn_by_server(folder, *, draws=DRAWS, plan=PLAN, unit=PrivacyUnit.ROW, session=SESSION):
    place = folder / "server.ledger.jsonl"
    with Ledger.open(place, dataset="all", budget=kit.BUDGET, unit=unit) as ledger:
        grant = ledger.grant(plan, purpose=f"SGBDTClassifier.fit, federation {session.hex()}", delta=0.0)
        for event in draws:
            grant.draw(event, purpose="trees")
    return place


def drawn_by_client(folder, name, numbers, *, session=SESSION, server="server-1", plan=PLAN, draws=DRAWS):
    """The ledger of a client that took part in these draws of the server."""
    (folder / name).mkdir(exist_ok=True)
    mine = kit.account(folder / name)
    mine.join(terms(session=session, server=server, event=plan))
    for round_, number in enumerate(numbers, start=1):
        event = draws[number - 1]
        release = FIRST if event is kit.BOTH else event
        mine.answer(kit.upload(round_), session=session, draw=number, event=event, release=release)
        mine.answer(kit.further("unmask", round_), session=session)
    mine.close()
    return folder / name / "client.ledger.jsonl"


@pytest.mark.parametrize("what", ["roster", "schema"])
def test_clients_that_were_told_different_things_are_found(what, tmp_path):
    server, places = drawn_by_server(tmp_path), []
    for number, (name, told) in enumerate((("a", 1), ("b", 1), ("c", 2))):
        place = drawn_by_client(tmp_path, name, [1, 2])
        with kit.account(tmp_path / name) as account:
            account.fix(SESSION, what, bytes([told]) * 32)
            account.fix(SESSION, "rows", bytes([number]) * 32)  # each one's own
        places.append(place)
    assert verify_federation(server, places[:2]).verdict == "confirmed"
    with pytest.raises(LedgerCorrupted, match=f"told another {what} than .*a/client.ledger.jsonl") as refused:
        verify_federation(server, places)
    assert [each.verdict for each in refused.value.federation.clients] == ["confirmed", "confirmed", "refuted"]


def test_a_clients_ledger_given_twice_is_not_two_clients(tmp_path):
    server, place = drawn_by_server(tmp_path), drawn_by_client(tmp_path, "a", [1, 2])
    with pytest.raises(InvalidParameter, match="name a file twice"):
        verify_federation(server, [place, tmp_path / "a" / ".." / "a" / "client.ledger.jsonl"])


def test_one_client_that_was_told_two_things_is_found(tmp_path):
    server, place = drawn_by_server(tmp_path), drawn_by_client(tmp_path, "a", [1, 2])
    with kit.account(tmp_path / "a") as account:
        account.fix(SESSION, "schema", bytes(32))
    answers = Path(f"{place}.answers")
    records = [json.loads(line) for line in answers.read_text().splitlines()]
    records.append({**records[-1], "digest": "11" * 32})
    for record in records:
        del record["index"], record["previous"], record["hash"]
    answers.write_text("".join(line + "\n" for line in chained(records)))
    with pytest.raises(LedgerCorrupted, match="another schema than before in one session"):
        verify_federation(server, [place])


def forged(path, change, *, answers=False):
    """Rebuild a ledger's chain after a change of its records; by default its answers file is removed."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        del record["index"], record["previous"], record["hash"]
    path.write_text("".join(line + "\n" for line in chained(change(records))))
    if not answers:
        Path(f"{path}.answers").unlink(missing_ok=True)
    return path


@pytest.fixture
def server(tmp_path):
    return drawn_by_server(tmp_path)


@pytest.fixture
def client(tmp_path):
    return drawn_by_client(tmp_path, "ada", (1, 2, 3, 4))


def test_honest_ledgers_agree(server, client, tmp_path):
    late = drawn_by_client(tmp_path, "ben", (2, 4))
    report = verify_federation(server, [client, late])
    assert report.verdict == "confirmed"
    assert report.differences == ()
    whole, half = (each.sessions[0] for each in report.clients)
    assert (whole.session, whole.draws, whole.missed, whole.answers) == (SESSION.hex(), 4, (), 8)
    assert (half.draws, half.missed, half.answers) == (2, (1, 3), 4)
    assert [each.notes for each in report.clients] == [(), ()]
    assert report.notes == ("clients that were not given were not looked at; no ledger says how many there were",)


def test_draws_of_samples_agree(tmp_path):
    draws = (FIRST, kit.BOTH, kit.BOTH, SECOND)
    server = drawn_by_server(tmp_path, plan=kit.PLAN, draws=draws)
    client = drawn_by_client(tmp_path, "ada", (1, 3), plan=kit.PLAN, draws=draws)
    report = verify_federation(server, [client])
    assert (report.verdict, report.clients[0].sessions[0].missed) == ("confirmed", (2, 4))


def test_an_account_that_was_killed_before_its_last_draw_agrees(server, client):
    forged(client, lambda records: records[:-1], answers=True)
    report = verify_federation(server, [client])
    assert report.verdict == "confirmed"
    assert report.clients[0].sessions[0].missed == (4,)


def swapped(records):
    first, second = (at for at, record in enumerate(records) if record.get("event") == to_json(BOTH))
    records[first - 1], records[second] = records[second], records[first - 1]
    return records


def renumbered(records):
    draws = [record for record in records if record["kind"] == "draw"]
    draws[0]["purpose"], draws[1]["purpose"] = draws[1]["purpose"], draws[0]["purpose"]
    return records


def doubled(records):
    records[-2]["purpose"] = records[-3]["purpose"]  # two draws of one event
    return records


def with_plan(plan):
    def change(records):
        records[1]["event"] = to_json(plan)
        return records

    return change


def with_purpose(old, new, kind="grant"):
    def change(records):
        for record in records:
            if record["kind"] == kind:
                record["purpose"] = record["purpose"].replace(old, new)
        return records

    return change


def another_event(records):
    records[2]["event"] = to_json(SECOND)
    return records


def with_a_second_grant(records):
    return [*records, {**records[1], "charge": {**records[1]["charge"], "epsilon": 1.0}}]


FORGED = {
    "swapped": (swapped, "drew number 2 after number 3"),
    "renumbered": (renumbered, "draw 2 is of another event"),
    "doubled": (doubled, "drew number 2 twice"),
    "another event": (another_event, "draw 1 is of another event at the client"),
    "a larger plan": (with_plan(Composed((PLAN, SECOND))), "granted another plan than the server"),
    "another session": (with_purpose(SESSION.hex(), "ab" * 16), "the server's ledger has no such session"),
    "no session": (with_purpose("resumable: federation", "fit"), "no session of a federation"),
    "a draw without a number": (with_purpose("federation draw 3", "more", "draw"), "a draw without a number: 'more'"),
    "a number beyond the server's": (
        with_purpose("federation draw 4", "federation draw 5", "draw"), "drew number 5; the server",
    ),
    "two grants": (with_a_second_grant, "1 grants at the server, 2 at the client"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "reason"), FORGED.values(), ids=FORGED)
def test_a_forged_client_is_told_by_its_name(server, client, tmp_path, change, reason):
    honest = drawn_by_client(tmp_path, "ben", (1,))
    forged(client, change)
    with pytest.raises(LedgerCorrupted, match=reason) as refused:
        verify_federation(server, [honest, client])
    assert str(client) in str(refused.value)
    assert str(honest) not in str(refused.value)
    report = refused.value.federation
    assert [each.verdict for each in report.clients] == ["confirmed", "refuted"]


FORGED_SERVERS = {
    "truncated": (lambda records: records[:-1], "drew number 4; the server's ledger has 3 draws"),
    "a draw is left out": (lambda records: [*records[:2], *records[3:]], "draw 1 is of another event"),
    "swapped": (lambda records: [*records[:2], records[3], records[2], *records[4:]], "draw 1 is of another event"),
    "a smaller plan": (with_plan(Composed((FIRST, Repeated(BOTH, count=2), SECOND))), "another plan"),
    "the session is not named": (with_purpose("federation", "training"), "has no such session"),
}


@pytest.mark.parametrize(("change", "reason"), FORGED_SERVERS.values(), ids=FORGED_SERVERS)
def test_a_forged_server_is_found_by_its_clients(server, client, change, reason):
    forged(server, change)
    with pytest.raises(LedgerCorrupted, match=reason):
        verify_federation(server, [client])


def test_a_server_with_another_unit_differs(client, tmp_path):
    with pytest.raises(LedgerCorrupted, match="protects a user each, the client's ledger a row"):
        verify_federation(drawn_by_server(tmp_path, unit=PrivacyUnit.USER), [client])


def test_draws_that_a_client_cut_off_are_in_its_answers(server, client):
    forged(client, lambda records: records[:-2], answers=True)
    with pytest.raises(LedgerCorrupted, match="draw 3 was answered, and the client's ledger lacks it"):
        verify_federation(server, [client])
    Path(f"{client}.answers").unlink()
    report = verify_federation(server, [client])
    assert report.clients[0].sessions[0].missed == (3, 4)
    assert report.clients[0].sessions[0].answers is None
    assert "its answers were not looked at" in report.clients[0].notes[0]


def test_answers_that_were_cut_off_or_altered_are_found(server, client):
    kept = Path(f"{client}.answers")
    whole = kept.read_bytes()
    lines = whole.splitlines(keepends=True)
    kept.write_bytes(b"".join(lines[:-2]))
    with pytest.raises(LedgerCorrupted, match="draw 4 has no answer in the answers file"):
        verify_federation(server, [client])
    for altered, reason in (
        (whole.replace(b"unmask", b"upload", 1), "line 4: its hash does not match"),
        (b"".join([*lines[:3], *lines[4:]]), "line 4: it says that it is line 4"),
        (whole[:-5], "line 10: it is cut short"),
        (b"", "line 1: it is cut short"),
        (b"[]\n", "not a line of an answers file"),
        (b'{"what":"open"}\n', "fields"),
    ):
        kept.write_bytes(altered)
        with pytest.raises(LedgerCorrupted, match=reason) as found:
            verify_federation(server, [client])
        assert str(client) in str(found.value)


def test_a_line_of_another_chain_is_found(server, client):
    kept = Path(f"{client}.answers")
    lines = kept.read_text().splitlines(keepends=True)
    body = {**json.loads(lines[-1]), "previous": "0" * 64}
    del body["hash"]
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    whole = {**body, "hash": hashlib.sha256(text.encode()).hexdigest()}
    kept.write_text("".join([*lines[:-1], json.dumps(whole, sort_keys=True, separators=(",", ":")) + "\n"]))
    with pytest.raises(LedgerCorrupted, match="it does not follow the line before it"):
        verify_federation(server, [client])


def rewritten(path, change):
    """Rebuild the answers file's chain after a change."""
    kept = Path(f"{path}.answers")
    records = [json.loads(line) for line in kept.read_text().splitlines()]
    for record in records:
        del record["index"], record["previous"], record["hash"]
    change(records)
    kept.write_text("".join(line + "\n" for line in chained(records)))


def put(line, **fields):
    return lambda records: records[line].update(fields)


def at(round_, attempt, kind):
    return {"at": [SESSION.hex(), round_, attempt, kind]}


ANSWERS = {
    "an answer twice": (lambda records: records.insert(3, records[2]), "an answer that was given before"),
    "an older round": (put(4, **at(1, 1, "upload")), "an answer that was given before"),
    "a new attempt after the unmasking": (put(4, **at(1, 2, "upload")), "goes on after it was unmasked"),
    "no upload": (put(4, **at(2, 1, "recover")), "does not begin with an upload"),
    "a release beyond the draw": (put(2, release=to_json(SECOND)), "a release that its draw does not hold"),
    "a draw opened twice": (put(4, draw=1), "a draw that was opened before"),
    "a group without groups": (put(2, group=1), "a group of an event without it"),
    "no session": (lambda records: records.pop(1), "an answer in no session"),
    "a session twice": (lambda records: records.insert(2, records[1]), "a session twice"),
    "another ledger": (put(0, ledger="0" * 64), "it belongs to another ledger"),
    "another format": (put(0, format="2"), "its format is '2'"),
    "another event": (
        put(2, event=to_json(GaussianEvent(noise_multiplier=9.0, adjacency=kit.A)),
            release=to_json(GaussianEvent(noise_multiplier=9.0, adjacency=kit.A))),
        "draw 1 is of another event in the answers file",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "reason"), ANSWERS.values(), ids=ANSWERS)
def test_a_rebuilt_answers_file_is_checked_by_its_rules(server, client, change, reason):
    rewritten(client, change)
    with pytest.raises(LedgerCorrupted, match=reason):
        verify_federation(server, [client])


def test_answers_in_a_session_without_a_grant_are_told(server, client):
    forged(client, lambda records: records[:1], answers=True)
    with pytest.raises(LedgerCorrupted, match="answered without a grant in the client's ledger"):
        verify_federation(server, [client])


def test_a_session_with_another_server_is_not_vouched_for(server, client, tmp_path):
    drawn_by_client(tmp_path, "ada", (1,), session=bytes(16), server="elsewhere")
    report = verify_federation(server, [client])
    assert report.verdict == "unconfirmed"
    assert [each.verdict for each in report.clients[0].sessions] == ["confirmed", "unconfirmed"]
    assert "a session with another server, 'elsewhere'" in report.clients[0].sessions[1].reason
    drawn_by_client(tmp_path, "ada", (1,), session=bytes([1] * 16))
    with pytest.raises(LedgerCorrupted, match=f"session {'01' * 16}: the server's ledger has no such session"):
        verify_federation(server, [client])


def test_what_was_not_compared_is_said(server, client):
    with Ledger.open(server) as ledger:
        ledger.grant(SECOND, purpose=f"SGBDTClassifier.fit, federation {'cd' * 16}", delta=0.0)
        ledger.grant(SECOND, purpose="another fit", delta=0.0)
    report = verify_federation(server, [LedgerRecord.from_lines(tuple(client.read_text().splitlines()))])
    assert report.verdict == "confirmed"
    assert report.clients[0].client == "client 0"
    assert report.notes[:2] == (
        f"session {'cd' * 16} of the server's ledger has no client here",
        "1 grants of the server's ledger are of no federation, and were compared with nothing",
    )
    assert "no file is beside a record" in report.clients[0].notes[0]


def test_a_refuted_charge_of_either_is_the_verdict(server, client):
    def cheap(records):
        records[1]["charge"]["epsilon"] = 1e-6
        return records

    forged(client, cheap, answers=False)
    with pytest.raises(LedgerCorrupted, match="a charge is refuted") as refused:
        verify_federation(server, [client])
    assert refused.value.federation.clients[0].sessions[0].verdict == "confirmed"


def test_a_ledger_that_is_not_in_order_is_named(server, client, tmp_path):
    text = client.read_text()
    client.write_text(text.replace("server-1", "server-2"))
    with pytest.raises(LedgerCorrupted, match=f"{client}: entry 1"):
        verify_federation(server, [client])
    with pytest.raises(LedgerError, match="none.jsonl: .* cannot be read"):
        verify_federation(server, [tmp_path / "none.jsonl"])
    with pytest.raises(LedgerCorrupted, match="the server's ledger: entry 0"):
        verify_federation(server, [client], dataset="others")
    for wrong in ([], str(client)):
        with pytest.raises(InvalidParameter, match="at least one client's ledger"):
            verify_federation(server, wrong)
    with pytest.raises(InvalidParameter, match="signature and public_key"):
        verify_federation(server, [client], signature="a")


def run(*arguments):
    return CliRunner().invoke(app, ["ledger", "verify", *(str(argument) for argument in arguments)])


def test_the_command_compares_and_ends_with_the_verdict(server, client, tmp_path):
    late = drawn_by_client(tmp_path, "ben", (2,))
    found = run(server, "--with", client, "--with", late)
    assert found.exit_code == 0, found.output
    assert "confirmed" in found.output
    told = json.loads(run(server, "--with", client, "--with", late, "--json").stdout)
    assert told["verdict"] == "confirmed"
    assert [each["sessions"][0]["missed"] for each in told["clients"]] == [[], [1, 3, 4]]
    forged(late, with_purpose("draw 2", "draw 3", "draw"))
    drawn_by_client(tmp_path, "ada", (), session=bytes(16), server="elsewhere")
    assert run(server, "--with", client).exit_code == 4
    assert run(server, "--with", client, "--allow-unconfirmed").exit_code == 0
    forged(late, another_event)
    differs = run(server, "--with", client, "--with", late, "--json")
    assert differs.exit_code == 3
    assert json.loads(differs.stdout)["differences"] == [
        f"{late}, session {SESSION.hex()}: draw 3 is of another event at the client than at the server"
    ]
    late.write_text("{}\n")
    broken = run(server, "--with", late)
    assert broken.exit_code == 1
    assert str(late) in broken.stderr.replace("\n", "")
