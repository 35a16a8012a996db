"""Confirmed, unconfirmed, refuted: the same word on the command line, in exit codes, signatures, JSON and pages."""

import json
import re

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from typer.testing import CliRunner

from benchmarks.forged_ledgers import chained, template
from ledgerwood.accounting import Adjacency, GaussianEvent, PureEvent, RenyiEvent
from ledgerwood.accounting.events import to_json
from ledgerwood.cli.commands import app
from ledgerwood.errors import LedgerCorrupted, LedgerError
from ledgerwood.pages.html import render
from ledgerwood.report.audits.pages import ledger_page
from ledgerwood.report.ledgers.audits import audit_ledger
from ledgerwood.verification import sign_ledger, verify_ledger

A = Adjacency.ADD_REMOVE
WORDS = {"confirmed": 0, "refuted": 3, "unconfirmed": 4}
SURE = PureEvent(epsilon=0.25, adjacency=A), {"epsilon": 0.25, "delta": 0.0, "method": "pure"}
# A divergence of 5 at order 1.0001: nothing of it says more than epsilon 10^5, nor that 20 is too little.
OPEN = RenyiEvent(orders=(1.0001,), divergences=(5.0,), adjacency=A), {"epsilon": 20.0, "delta": 1e-6, "method": "pld"}
# Gaussian noise of multiplier 1 costs 4.89 at 1e-6.
FORGED = GaussianEvent(noise_multiplier=1.0, adjacency=A), {"epsilon": 2.0, "delta": 1e-6, "method": "profile"}
GRANTS = {"confirmed": (SURE,), "unconfirmed": (SURE, OPEN), "refuted": (OPEN, FORGED, SURE)}


@pytest.fixture(params=WORDS)
def word(request):
    return request.param


@pytest.fixture
def place(tmp_path, word):
    """A ledger of this word, its chain right."""
    opening, grant = template(SURE[0], "basic")
    grants = [{**grant, "event": to_json(event), "charge": charge} for event, charge in GRANTS[word]]
    path = tmp_path / f"{word}.jsonl"
    path.write_text("".join(line + "\n" for line in chained([opening, *grants])))
    return path


@pytest.fixture
def key(tmp_path):
    found = tmp_path / "owner.pem"
    found.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return found


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.slow_after(2)  # trains and checks by the command line
@pytest.mark.parametrize("command", [("ledger", "verify"), ("audit", "ledger")])
def test_the_exit_code_is_the_word(word, place, command):
    plain = run(*command, place)
    assert plain.exit_code == WORDS[word], plain.output
    as_json = run(*command, place, "--json")
    assert as_json.exit_code == WORDS[word]
    found = json.loads(as_json.stdout)
    assert found.get("verified", found)["verdict"] == word  # what was found is printed whatever the code
    allowed = run(*command, place, "--allow-unconfirmed")
    assert allowed.exit_code == (0 if word == "unconfirmed" else WORDS[word])


def test_the_table_has_a_row_with_its_word_for_each_grant(word, place):
    shown = run("ledger", "verify", place).stdout
    for wanted in WORDS:
        here = [verdict.verdict for verdict in report_of(place).verdicts].count(wanted)
        beside = here + (wanted == word)  # the summary has the worst of them
        rows = re.findall(rf"(?m)^(?:.*\W)?{wanted}\W", shown.replace("confirmed.jsonl", ""))
        assert (len(rows) >= beside) if here else (beside == len(rows) == 0), shown


def report_of(place):
    try:
        return verify_ledger(place)
    except LedgerCorrupted as refused:
        return refused.report


def test_a_chain_that_does_not_hold_is_code_1_and_says_what_still_holds(place):
    place.write_text(place.read_text().replace("0.25", "0.125"))
    broken = run("ledger", "verify", place, "--allow-unconfirmed")
    assert broken.exit_code == 1
    assert broken.stdout.startswith("Entry ")
    assert "Nothing from entry" in broken.stdout


def test_the_page_says_the_word_and_each_grants_own(word, place):
    audit = audit_ledger(str(place), dataset=None, model=None, vault=None, public_data=False)
    page = ledger_page(audit)
    assert page.tone == {"confirmed": "good", "refuted": "bad", "unconfirmed": "open"}[word]
    assert (
        page.verdict
        == {
            "confirmed": "The ledger is confirmed",
            "unconfirmed": "The ledger is not confirmed",
            "refuted": "The ledger is refuted",
        }[word]
    )
    grants = page.sections[0].tables[0]
    assert [row[1] for row in grants.rows] == [verdict.verdict for verdict in report_of(place).verdicts]
    html = render(page)
    for verdict in report_of(place).verdicts:
        assert f">{verdict.verdict}<" in html
        assert (f"Entry {verdict.entry} is {verdict.verdict}: " in html) == (verdict.verdict != "confirmed")
    counts = {"unconfirmed": "1 of 2 grants could be neither", "refuted": "1 of 3 grants cost more"}
    assert counts.get(word, "1 grants and 0 draws were verified") in page.sentence


def test_the_command_writes_that_page_whatever_the_word(word, place, tmp_path):
    assert run("audit", "ledger", place, "--html", tmp_path / "page.html").exit_code == WORDS[word]
    assert f">{word}<" in (tmp_path / "page.html").read_text()


def test_only_a_confirmed_ledger_is_signed_unless_told_otherwise(word, place, key):
    if word == "confirmed":
        assert json.loads(sign_ledger(place, private_key=key))["entries"] == 2
        return
    with pytest.raises(LedgerError, match="below what the plan costs" if word == "refuted" else "nothing was signed"):
        sign_ledger(place, private_key=key)
    if word == "refuted":
        with pytest.raises(LedgerCorrupted, match="entry 2"):
            sign_ledger(place, private_key=key, allow_unconfirmed=True)
        return
    with pytest.raises(LedgerError, match="1 of 2 grants are unconfirmed, the first at entry 2"):
        sign_ledger(place, private_key=key)
    assert json.loads(sign_ledger(place, private_key=key, allow_unconfirmed=True))["entries"] == 3


def test_the_command_signs_what_the_function_does(word, place, key, tmp_path):
    out = tmp_path / "run.sig"
    plain = run("ledger", "sign", place, out, "--private-key", key)
    assert plain.exit_code == (0 if word == "confirmed" else 1)
    assert out.exists() == (word == "confirmed")
    if word != "confirmed":
        told = run("ledger", "sign", place, out, "--private-key", key, "--allow-unconfirmed")
        assert told.exit_code == (0 if word == "unconfirmed" else 1)
        assert out.exists() == (word == "unconfirmed")
