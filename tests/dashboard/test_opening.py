"""A new ledger from a form: the one thing that the dashboard writes."""

import pytest

import ledgerwood as lw
from ledgerwood.dashboard.opening import file_name

FORM = {
    "dataset": "patients 2026", "epsilon": "2", "delta": "1e-6", "unit": "user", "adjacency": "replace-one",
    "filter": "zcdp", "analysts": "ada = 0.5\n\nben=0.25",
    "owner": "Dr. Ann <Other>", "description": "a study", "opened": "2026-11-28",
}  # fmt: skip


def form(board, nth, /, **changes):
    csrf = board.login()
    page = board.get("/open").text
    ids = [part.partition('"')[0] for part in page.split('<option value="')[1:]]
    return {**FORM, "csrf": csrf, "place": ids[nth], **changes}


@pytest.mark.parametrize("place", [0, 1])
def test_a_ledger_is_opened_with_its_terms(board, team, place):
    answer = board.post("/open", form(board, place))
    assert answer.status_code == 303
    page = board.get(answer.headers["location"]).text
    assert "patients 2026" in page
    assert "Dr. Ann &lt;Other&gt;" in page
    where = team / "ledgers" / "patients-2026.ledger.jsonl" if place else f"sqlite:///{team}/team.db"
    with lw.Ledger.open(where, dataset="patients 2026", analyst="ada") as ledger:
        assert ledger.budget == lw.Budget(epsilon=2.0, delta=1e-6, adjacency=lw.Adjacency.REPLACE_ONE)
        assert (ledger.unit, ledger.filter) == (lw.PrivacyUnit.USER, lw.ZCDPFilter())
        assert (ledger.about.owner, ledger.about.opened) == ("Dr. Ann <Other>", "2026-11-28")
        assert ledger.record().analysts == (("ada", 0.5), ("ben", 0.25))


@pytest.mark.parametrize("place", [0, 1])
def test_a_data_set_has_one_ledger(board, place):
    assert board.post("/open", form(board, place)).status_code == 303
    again = board.post("/open", form(board, place, epsilon="50"))
    assert again.status_code == 422
    assert "one data set has one ledger" in again.text


@pytest.mark.parametrize(
    ("change", "said"),
    [({"dataset": ""}, "needs the public label"), ({"dataset": "a\u202eb"}, "dataset"), ({"epsilon": "x"}, "epsilon"),
     ({"epsilon": "-1"}, "epsilon"), ({"epsilon": "nan"}, "epsilon"), ({"delta": "2"}, "delta"),
     ({"delta": ""}, "delta"),
     ({"unit": "house"}, "unit"), ({"adjacency": ""}, "adjacency"), ({"filter": "none"}, "filter"),
     ({"place": "/etc"}, "choose where"), ({"analysts": "ada"}, "LABEL=SHARE"),
     ({"analysts": "a=0.6\nb=0.6"}, "at most 1"),
     ({"analysts": "a=nan"}, "share"), ({"delta": "0"}, "delta"), ({"dataset": "x" * 201}, "dataset")],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_kept_in_the_form(board, team, change, said):
    before = sorted(path.name for path in (team / "ledgers").iterdir())
    answer = board.post("/open", form(board, 1, **change))
    assert answer.status_code == 422
    assert said in answer.text
    assert "Nothing was opened" in answer.text
    assert sorted(path.name for path in (team / "ledgers").iterdir()) == before


def test_file_names_hold_nothing_of_a_path():
    assert file_name("../../etc/passwd") == "etc-passwd.ledger.jsonl"
    assert file_name("Ünïcode \u202e") == "n-code.ledger.jsonl"
    assert file_name("\u2603") == file_name("\u2603")
    assert file_name("\u2603").startswith("ledger-")
    assert file_name("x" * 300) == "x" * 60 + ".ledger.jsonl"


def test_without_a_folder_or_a_database_nothing_can_be_opened(made, team):
    board = made(team / "ledgers" / "run.ledger.jsonl")
    board.login()
    assert "needs a folder or a database" in board.get("/open").text


def test_verify_again_reads_all_of_it(board):
    csrf = board.login()
    book = board.book("adult")
    before = board.shelf._standing[book].verification
    answer = board.post(f"/ledger/{book}/verify", {"csrf": csrf})
    assert answer.headers["location"] == f"/ledger/{book}"
    assert board.shelf._standing[book].verification is not before
    assert 'id="verify-again"' in board.get(f"/ledger/{book}").text
