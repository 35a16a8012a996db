"""Every page of the dashboard, by its texts."""

import json
import re
import threading
from html.parser import HTMLParser

import anyio
import anyio.to_thread
import httpx

import ledgerwood as lw
from ledgerwood.verification import verify_ledger

from .conftest import ORIGIN, A, budget, pure


def tags(page):
    """The elements of a page, as a parser sees them."""
    found = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, _: found.append(tag)
    parser.feed(page)
    return found


def words(answer):
    """The words of a page, without its marks."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.text))


def test_the_first_page_shows_every_ledger_with_what_is_used_and_left(board):
    page = board.get("/")
    assert page.status_code == 200
    said = words(page)
    assert all(name in said for name in ("adult", "census", "run", "sqlite team.db", "ledgers"))
    assert said.count("The ledger is confirmed") == 3
    assert "with and without any one unit" in said
    assert "basic: epsilons and deltas add up" in said
    assert "concentrated privacy: rhos add up" in said
    assert "% of the epsilon of the whole budget is used" in page.text
    assert 'aria-label="0 % of the epsilon of ben is used"' in page.text


def test_a_ledger_says_what_each_grant_paid_for(board):
    page = board.get(f"/ledger/{board.book('adult')}")
    said = words(page)
    assert "60 times a result with Gaussian noise of 4 times the sensitivity, on a fresh sample of 1 % of" in said
    assert "a release of epsilon 0.4" in said
    assert "55 of 60" in said
    assert "1 of 1" in said
    grants = said[said.index("What it paid for") :]
    assert grants.index("churn model") < grants.index("median age"), "the latest first"
    assert "ada" in said
    assert "Charged so far: epsilon" in said


def test_what_is_left_is_what_the_ledger_would_grant(board, team):
    with lw.Ledger.open(f"sqlite:///{team}/team.db", dataset="adult", analyst="ben") as ledger:
        left = ledger.remaining("ben")
    said = words(board.get(f"/ledger/{board.book('adult')}"))
    shown = re.search(r"ben .*? epsilon 0.9, delta 3e-06 epsilon ([\d.]+), delta", said)
    assert 0.999 * left.epsilon <= float(shown[1]) <= left.epsilon


def test_a_grant_has_its_draws_page_by_page(board):
    book = board.book("adult")
    first = words(board.get(f"/ledger/{book}/grant/3"))
    assert "Draws, the latest first (55 in all)" in first
    assert "step 54" in first
    assert "step 4 " not in first
    assert "step 4 " in words(board.get(f"/ledger/{book}/grant/3?page=2"))
    beyond = board.get(f"/ledger/{book}/grant/3?page=99999999999999")
    assert "step 54" in words(beyond)


def test_what_is_not_there_is_a_page_that_says_so(board):
    book = board.book("adult")
    for path in (
        "/nothing",
        "/ledger/abc",
        f"/ledger/{book}/grant/0",
        f"/ledger/{book}/grant/999999999999",
        "/model/x",
    ):
        answer = board.get(path, accept="text/html")
        assert answer.status_code == 404, path
        assert "All ledgers" in answer.text
    assert board.get("/nothing", accept="application/json").text.startswith("404: ")
    assert board.get("/favicon.ico").status_code == 204


def test_the_entries_can_be_taken_away_and_verified_elsewhere(board, team):
    answer = board.get(f"/ledger/{board.book('adult')}/lines")
    path = team / "taken.jsonl"
    path.write_bytes(answer.content)
    assert "attachment" in answer.headers["content-disposition"]
    assert verify_ledger(path).verdict == "confirmed"


def test_a_live_part_is_sent_only_when_it_changed(board, team):
    book = board.book("census")
    for path in ("/live?page=1", f"/ledger/{book}/live?page=1"):
        part = board.get(path)
        stamp = re.search(r'data-stamp="(\w+)"', part.text)[1]
        assert "<html" not in part.text
        assert board.get(f"{path}&stamp={stamp}").status_code == 204
    with lw.Ledger.open(f"sqlite:///{team}/team.db", dataset="census") as ledger:
        ledger.spend(pure(0.25), purpose="a count", delta=0.0)
    board.shelf.relist()
    assert "a count" in board.get(f"{path}&stamp={stamp}").text


def test_a_ledger_that_grows_is_verified_again_for_what_is_new(board, team):
    book = board.book("census")
    with lw.Ledger.open(f"sqlite:///{team}/team.db", dataset="census") as ledger:
        ledger.spend(pure(0.25), purpose="a count", delta=0.0)
        head = ledger.head
    board.shelf.relist()
    said = words(board.get(f"/ledger/{book}"))
    assert "Confirmed up to entry 0" in said
    assert "(2 entries)" in said
    board.shelf._standing[book].again = 0.0
    said = words(board.get(f"/ledger/{book}"))
    assert "1 grants and 1 draws were verified independently" in said
    assert head in said


def test_hostile_texts_are_shown_and_do_nothing(made, tmp_path):
    nasty = "<script>alert('x')</script>\"'&{{7*7}}<img src=x onerror=y>"
    with lw.Ledger.open(
        f"sqlite:///{tmp_path}/team.db", dataset=nasty, budget=budget(), unit=lw.PrivacyUnit.ROW,
        analysts={nasty: 0.5}, analyst=nasty,
    ) as ledger:  # fmt: skip
        ledger.spend(pure(0.1), purpose=nasty, delta=0.0)
    board = made(f"sqlite:///{tmp_path}/team.db")
    for path in ("/", f"/ledger/{board.book(nasty)}", f"/ledger/{board.book(nasty)}/grant/1"):
        page = board.get(path).text
        assert {"script", "img"} & set(tags(page)) == {"script"}
        assert tags(page).count("script") == 1, "the page's own"
        assert "{{7*7}}" in page
        assert "&lt;script&gt;alert(" in page


def test_static_files_are_two_and_kept(board):
    home = board.get("/").text
    for kind, name in (("text/css", "css"), ("text/javascript", "js")):
        address = re.search(rf'"(/static/dashboard\.{name}\?v=\w+)"', home)[1]
        answer = board.get(address)
        assert answer.headers["content-type"].startswith(kind)
        assert answer.headers["cache-control"] == "private, max-age=86400"
    assert board.get("/static/..%2fapp.py").status_code == 404
    assert board.get("/static/app.py").status_code == 404


def test_pages_are_light(board):
    weights = {path: len(board.get(path).content) for path in ("/", f"/ledger/{board.book('adult')}", "/calculator")}
    assert max(weights.values()) < 60_000, json.dumps(weights)
    assert sum(len(board.get(f"/static/dashboard.{kind}").content) for kind in ("css", "js")) < 30_000


def test_no_ledger_is_said(made, tmp_path):
    assert "There is no ledger here yet" in made(tmp_path).get("/").text


def test_reproducible_noise_is_the_worst_that_a_page_says(made, tmp_path):
    with lw.Ledger.open(tmp_path / "t.ledger.jsonl", dataset="t", budget=budget(), unit=lw.PrivacyUnit.ROW) as ledger:
        ledger.spend(lw.GaussianEvent(noise_multiplier=9.0, adjacency=A), purpose="x", delta=1e-6, randomness="test")
    assert "the noise protects no one" in words(made(tmp_path).get("/"))


def test_a_source_that_takes_long_stops_no_other_page(board, monkeypatch):
    """Which ledgers there are is asked in a thread: the loop that answers everybody else goes on."""
    book, began, release = board.book("adult"), threading.Event(), threading.Event()
    source = board.shelf.sources[0]
    plain = type(source).ledgers

    def slow(self):
        began.set()
        assert release.wait(20.0)
        return plain(self)

    monkeypatch.setattr(type(source), "ledgers", slow)
    board.shelf.relist()

    async def asked():
        transport = httpx.ASGITransport(app=board.app)
        async with (
            httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client,
            anyio.create_task_group() as group,
        ):
            found = []

            async def page():
                found.append(await client.get(f"/ledger/{book}"))

            group.start_soon(page)
            assert await anyio.to_thread.run_sync(began.wait, 20.0)
            style = await client.get("/static/dashboard.css")
            assert not found
            release.set()
        return style.status_code, found[0].status_code

    assert anyio.run(asked) == (200, 200)
