"""`ledgerwood ledger` on files and databases: list, show, verify, migrate, export, import."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood.accounting.ledger import _database as steps
from ledgerwood.cli.commands import app

RUNNER = CliRunner()
A = lw.Adjacency.ADD_REMOVE
BUDGET = lw.Budget(epsilon=1.0, delta=1e-5, adjacency=A)


def run(*arguments):
    return RUNNER.invoke(app, ["ledger", *(str(argument) for argument in arguments)])


def answer(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/team.db"


@pytest.fixture
def head(url):
    """Two data sets; the head of the one that spent."""
    lw.Ledger.open(url, dataset="census", budget=BUDGET, unit=lw.PrivacyUnit.USER).close()
    with lw.Ledger.open(url, dataset="adult", budget=BUDGET, unit=lw.PrivacyUnit.ROW) as ledger:
        ledger.spend(lw.PureEvent(epsilon=0.25, adjacency=A), purpose="a [bold] count")
        return ledger.head


def test_list_names_every_data_set(url, head):
    rows = answer("list", url)["ledgers"]
    assert [(row["dataset"], row["spent_epsilon"], row["entries"]) for row in rows] == [
        ("adult", 0.25, 3),
        ("census", 0.0, 1),
    ]
    assert rows[0]["head"] == head
    shown = run("list", url)
    assert shown.exit_code == 0
    assert "census" in shown.stdout


def test_a_new_ledger_is_opened_with_its_terms_and_never_over_another(tmp_path, url):
    wanted = ("--epsilon", 3, "--delta", 1e-6)
    file = tmp_path / "budget.jsonl"
    made = answer(
        "open", file, *wanted, "--owner", "Ada", "--opened", "2026-03-01", "--unit", "user", "--filter", "zcdp"
    )
    assert (made["owner"], made["opened"], made["unit"], made["spent_epsilon"]) == ("Ada", "2026-03-01", "user", 0.0)
    before = file.read_bytes()
    again = run("open", file, *wanted)
    assert again.exit_code == 1
    assert "already" in again.stderr
    assert file.read_bytes() == before
    assert run("open", url, *wanted).exit_code == 1  # of which data set?
    shared = answer("open", url, *wanted, "--dataset", "patients", "--share", "ada=0.5", "--share", "ben=0.25")
    assert shared["analysts"] == "ada 0.5, ben 0.25"
    assert run("open", url, *wanted, "--dataset", "patients").exit_code == 1
    with lw.Ledger.open(url, dataset="patients", analyst="ada") as ledger:
        ledger.spend(lw.PureEvent(epsilon=0.25, adjacency=A), purpose="a count")
    assert answer("verify", url)["epsilon_readded"] == 0.25
    for wrong in (("--epsilon", -1, "--delta", 1e-6), (*wanted, "--share", "ada=2"), (*wanted, "--opened", "soon")):
        assert run("open", tmp_path / "wrong.jsonl", *wrong).exit_code == 1
        assert not (tmp_path / "wrong.jsonl").exists()


def test_the_only_data_set_of_a_database_need_not_be_named_and_of_several_the_names_are_told(url, tmp_path, head):
    one = f"sqlite:///{tmp_path}/one.db"
    lw.Ledger.open(one, dataset="census", budget=BUDGET, unit=lw.PrivacyUnit.USER).close()
    assert answer("show", one)["terms"]["dataset"] == "census"
    assert answer("verify", one)["dataset"] == "census"
    for command in ("show", "verify"):
        refused = run(command, url)
        assert refused.exit_code == 1
        assert "holds 2 data sets ('adult', 'census'): name one by --dataset" in refused.stderr.replace("\n", " ")


def test_show_and_verify_take_a_database(url, head):
    assert answer("show", url, "--dataset", "adult")["terms"]["head"] == head
    assert "a [bold] count" in run("show", url, "--dataset", "adult").stdout
    assert answer("verify", url, "--dataset", "adult", "--head", head)["epsilon_readded"] == 0.25
    wrong = run("verify", url, "--dataset", "adult", "--head", "0" * 64)
    assert wrong.exit_code == 1
    assert "Nothing from entry 2 on is vouched for" in wrong.stdout.replace("\n", " ")
    assert "was expected" in wrong.stderr


def test_export_and_import_move_a_ledger(url, head, tmp_path):
    file, other = tmp_path / "adult.jsonl", f"sqlite:///{tmp_path}/other.db"
    assert answer("export", url, file, "--dataset", "adult")["head"] == head
    assert answer("import", file, other)["dataset"] == "adult"
    assert answer("verify", other, "--dataset", "adult", "--head", head)["draws"] == 1
    assert answer("show", file, "--dataset", "adult")["terms"]["entries"] == 3
    file.write_text(file.read_text().replace("0.25", "0.125"))
    bad = run("import", file, f"sqlite:///{tmp_path}/third.db")
    assert bad.exit_code == 1
    assert "entry 1" in bad.stderr
    assert not (tmp_path / "third.db").exists()


@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_a_database_needs_a_data_set(url, head, tmp_path, command):
    more = [tmp_path / "out.jsonl"] if command == "export" else []
    result = run(command, url, *more)
    assert result.exit_code == 1
    assert "data set" in result.stderr
    missing = run(command, url, *more, "--dataset", "abalone")
    assert missing.exit_code == 1
    assert "there is no ledger at" in missing.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_another_data_set_is_refused(url, head, tmp_path):
    run("export", url, tmp_path / "a.jsonl", "--dataset", "adult")
    for command in ("show", "verify"):
        result = run(command, tmp_path / "a.jsonl", "--dataset", "census")
        assert result.exit_code == 1
        assert "'adult', not of 'census'" in result.stderr


def test_what_is_not_there_is_said(tmp_path):
    for command in ("list", "verify"):
        result = run(command, f"sqlite:///{tmp_path}/none.db", *(["--dataset", "d"] if command == "verify" else []))
        assert result.exit_code == 1
        assert "there is no ledger database" in result.stderr
    assert run("show", tmp_path / "none.jsonl").exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_migrate_gives_analysts_their_shares(url, head, tmp_path):
    shares = ("--dataset", "adult", "--share", "ada=0.5", "--share", "ben=0.25")
    dry = answer("migrate", url, *shares, "--dry-run")
    assert (dry["dry_run"], dry["format_version"], dry["entries"], dry["analysts"]) == (True, 2, 4, "ada 0.5, ben 0.25")
    assert answer("verify", url, "--dataset", "adult")["head"] == head  # nothing was written
    done = answer("migrate", url, *shares)
    assert done == dry | {"dry_run": False}
    assert answer("show", url, "--dataset", "adult")["terms"]["head"] == done["head"]
    assert run("show", url, "--dataset", "adult").exit_code == 0
    assert answer("verify", url, "--dataset", "adult", "--head", done["head"])["epsilon_readded"] == 0.25
    again = run("migrate", url, *shares)
    assert (again.exit_code, again.stdout) == (1, "")
    assert "shares never change" in again.stderr
    run("export", url, tmp_path / "census.jsonl", "--dataset", "census")
    assert (
        answer("migrate", tmp_path / "census.jsonl")["format_version"] == 1
    )  # nothing to do: version 1 is read for ever
    assert answer("migrate", tmp_path / "census.jsonl", "--share", "ada=1.0")["format_version"] == 2


def test_migrate_tells_what_it_does_to_the_tables(url, head, monkeypatch):
    found = answer("migrate", url)
    assert (found["tables_found"], found["tables_now"], found["steps"], found["chains_checked"]) == (1, 1, None, 2)
    monkeypatch.setattr(steps, "STEPS", (steps.StoreStep(summary="one more [column]", run=lambda connection: None),))
    assert "ledgerwood ledger migrate" in run("show", url, "--dataset", "adult").stderr
    told = run("migrate", url)
    assert told.exit_code == 0
    assert told.stderr.splitlines() == [
        "tables, version 2: one more [column]",
        "chain of data set 'adult', entries: 3",
        "chain of data set 'census', entries: 1",
    ]
    assert answer("verify", url, "--dataset", "adult", "--head", head)["draws"] == 1


@pytest.mark.slow_after(2)  # trains and checks by the command line
@pytest.mark.parametrize("share", ["ada", "=0.5", "ada=", "ada=x", "ada=0", "ada=1.5", "ada=nan", "ada=inf"])
def test_migrate_needs_shares_that_are_some(url, head, share):
    for more in ((), ("--dry-run",)):
        result = run("migrate", url, "--dataset", "adult", "--share", share, *more)
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"share={share!r} must be LABEL=SHARE" in result.stderr
    assert answer("show", url, "--dataset", "adult")["terms"]["head"] == head


def test_a_checkpoint_is_added_and_verified_from(url, head, tmp_path):
    added = answer("checkpoint", url, "--dataset", "adult")
    assert (added["checkpoint"], added["entries"], added["format_version"]) == (3, 4, 4)
    assert answer("verify", url, "--dataset", "adult")["trusted"] == 0
    part = run("verify", url, "--dataset", "adult", "--from-checkpoint", "--json")
    found = json.loads(part.stdout)
    assert part.exit_code == 4
    assert (found["verdict"], found["trusted"], found["trusted_to"]) == ("trusted", 3, "writer")
    assert "The 3 entries before the checkpoint were not verified" in found["trust"]
    assert found["head"] == added["head"]
    allowed = run("verify", url, "--dataset", "adult", "--from-checkpoint", "--allow-unconfirmed")
    assert allowed.exit_code == 0
    assert "trusted" in allowed.stdout
    both = run("verify", url, "--dataset", "adult", "--from-checkpoint", "--with", __file__)
    assert both.exit_code == 1
    assert "--from-checkpoint and --with exclude each other" in both.stderr
    none = run("verify", url, "--dataset", "census", "--from-checkpoint")
    assert (none.exit_code, "no checkpoint to begin at" in none.stderr) == (1, True)


@pytest.fixture
def cut(url, head, tmp_path):
    """A file that begins with a checkpoint after 5 entries, and one spend after it; a grant is half drawn before."""
    path, event = tmp_path / "cut.ledger.jsonl", lw.PureEvent(epsilon=0.125, adjacency=A)
    with lw.Ledger.open(url, dataset="adult") as ledger:
        ledger.grant(lw.Repeated(event, count=2), purpose="held").draw(event, purpose="one")
        ledger.checkpoint()
        ledger.spend(event, purpose="after")
        ledger.record().from_checkpoint().save(path)
    return path


def test_what_is_shown_of_a_part_names_what_is_trusted(cut):
    shown = answer("show", cut)["terms"]
    assert (shown["entries"], shown["entries_trusted"], shown["spent_epsilon"]) == (8, 5, 0.625)
    assert "the 5 entries before it are not here" in shown["trust"]
    table = run("show", cut).stdout
    assert "grants that the checkpoint holds" in table
    assert "1 of 2" in table
    assert "trusted to whoever wrote" in " ".join(table.replace("│", " ").split())
    audited = RUNNER.invoke(app, ["audit", "ledger", str(cut)])
    assert "The 5 entries before the checkpoint were not verified" in " ".join(audited.stdout.replace("│", " ").split())
    assert audited.exit_code == 4


def test_a_command_that_needs_the_whole_ledger_says_so(cut, tmp_path):
    before = cut.read_bytes()
    for result in (
        run("checkpoint", cut),
        run("migrate", cut, "--share", "ada=0.5", "--dry-run"),
        RUNNER.invoke(app, ["ledger", "import", str(cut), f"sqlite:///{tmp_path}/other.db"]),
    ):
        assert result.exit_code == 1
        assert "the 5 entries before it are not there; this command needs the whole ledger" in result.stderr
    assert cut.read_bytes() == before


def test_a_refusal_names_a_flag_that_can_be_given(cut, tmp_path):
    key = tmp_path / "owner.pem"
    key.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    sign = ("sign", cut, tmp_path / "cut.sig", "--private-key", key)
    refused = run(*sign)
    assert "(--allow-unconfirmed signs all the same)" in refused.stderr
    assert run(*sign, "--allow-unconfirmed").exit_code == 0
