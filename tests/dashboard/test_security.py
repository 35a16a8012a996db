"""What the dashboard refuses, and what each response says of itself."""

import pytest

import ledgerwood as lw
from ledgerwood.dashboard import security
from ledgerwood.dashboard.security import TokenGate
from ledgerwood.dashboard.serving import is_loopback
from ledgerwood.errors import InvalidParameter

from .conftest import ORIGIN, TOKEN, budget

PATHS = ("/", "/live", "/calculator", "/models", "/login", "/static/dashboard.css", "/nothing", "/favicon.ico")


@pytest.mark.parametrize("path", PATHS)
def test_every_response_has_the_headers(board, path):
    for host in ("127.0.0.1:8710", "evil.example"):
        answer = board.get(path, host=host)
        found = answer.headers
        assert found["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in found["content-security-policy"]
        assert "frame-ancestors 'none'" in found["content-security-policy"]
        assert "form-action 'self'" in found["content-security-policy"]
        assert found["x-frame-options"] == "DENY"
        assert found["x-content-type-options"] == "nosniff"
        assert found["referrer-policy"] == "same-origin"
        assert "no-store" in found["cache-control"] or path.startswith("/static")


def test_no_page_has_a_script_or_a_style_within_it(board):
    board.login()
    for path in ("/", "/calculator", "/models", "/open", f"/ledger/{board.book('adult')}"):
        page = board.get(path).text
        assert " style=" not in page
        assert "<style" not in page
        assert page.count("<script") == page.count('<script src="/static/') == 1
        assert "javascript:" not in page
        assert " onclick" not in page


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1:1", "", "127.0.0.1.evil.example:8710", "127.0.0.1:8710, x"]
)
def test_another_name_of_the_server_is_not_answered(board, host):
    answer = board.get("/", host=host)
    assert answer.status_code == 421
    assert "ledger" not in answer.text.lower()


@pytest.mark.parametrize("host", ["127.0.0.1:8710", "localhost:8710", "LOCALHOST", "[::1]:8710"])
def test_its_own_names_are(board, host):
    assert board.get("/", host=host).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(board, method):
    assert board.ask(method, "/").status_code == 405


def test_a_long_address_is_refused(board):
    assert board.get("/?" + "x" * 5_000).status_code == 414


CHANGES = ("/open", "/ledger/{book}/verify")


@pytest.mark.parametrize("path", CHANGES)
def test_nothing_is_changed_without_a_session(board, path):
    path = path.format(book=board.book("adult"))
    answer = board.post(path, {"csrf": "x"})
    assert answer.status_code == 401
    board.cookies.set("ledgerwood-8710", "a made-up session", domain="127.0.0.1")
    assert board.post(path, {"csrf": "x"}).status_code == 401


@pytest.mark.parametrize("path", CHANGES)
def test_a_session_alone_changes_nothing(board, path):
    csrf = board.login()
    path = path.format(book=board.book("adult"))
    for form in (
        {"x": "1"},
        {"csrf": ""},
        {"csrf": csrf[:-1]},
        {"csrf": csrf + "x"},
        {"csrf": "\ud800".encode("utf-8", "replace")},
    ):
        assert board.post(path, form).status_code == 403, form
    assert board.post(path, {"csrf": csrf}).status_code in (303, 422)


@pytest.mark.parametrize("path", [*CHANGES, "/login", "/logout"])
def test_a_form_from_elsewhere_is_refused(board, path):
    csrf = board.login()
    path = path.format(book=board.book("adult"))
    form = {"csrf": csrf, "token": TOKEN}
    for origin in ("https://evil.example", "null", "http://127.0.0.1:8711", "http://127.0.0.1:8710.evil.example"):
        assert board.post(path, form, origin=origin).status_code == 403, origin
    assert board.ask("POST", path, data=form).status_code == 403, "no origin"
    assert board.post(path, form, **{"sec-fetch-site": "cross-site"}).status_code == 403
    assert board.post(path, form, **{"sec-fetch-site": "same-site"}).status_code == 403


def test_a_form_has_a_kind_a_length_and_a_bound(board):
    json = board.ask("POST", "/login", json={"token": TOKEN}, headers={"origin": ORIGIN})
    assert json.status_code == 415
    large = board.post("/login", {"token": "x" * security.LARGEST_BODY})
    assert large.status_code == 413
    many = board.post("/login", {f"x{k}": "1" for k in range(60)})
    assert many.status_code == 400

    async def parts():
        yield b"token=x"

    kind = {"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"}
    assert board.ask("POST", "/login", content=parts(), headers=kind).status_code == 411


def test_the_cookie_is_for_this_server_and_no_script(board):
    answer = board.post("/login", {"token": TOKEN, "next": "/open"})
    cookie = answer.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    assert TOKEN.lower() not in cookie
    assert "secure" not in cookie, "loopback is plain HTTP"
    assert answer.headers["location"] == "/open"
    behind = board.post("/login", {"token": TOKEN}, origin="https://127.0.0.1:8710")
    assert "secure" in behind.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil", "javascript:x", "/a?b", "/%2f"]
)
def test_a_login_leads_nowhere_else(board, target):
    assert board.post("/login", {"token": TOKEN, "next": target}).headers["location"] == "/"
    assert "evil" not in board.ask("GET", "/login", params={"next": target}).text


def test_after_a_logout_the_session_is_over(board):
    csrf = board.login()
    kept = board.cookies
    assert board.post("/logout", {"csrf": "wrong"}).status_code == 303
    board.cookies = kept
    assert board.post("/logout", {"csrf": csrf}).status_code == 303
    board.cookies = kept
    assert board.post(f"/ledger/{board.book('adult')}/verify", {"csrf": csrf}).status_code == 401


def test_a_wrong_token_opens_nothing_and_ten_stop_the_door(board):
    for token in ("", TOKEN[:-1], TOKEN + " "):
        answer = board.post("/login", {"token": token})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    gate = TokenGate(TOKEN)
    assert all(gate.login("wrong") is None for _ in range(10))
    assert gate.login(TOKEN) is None
    gate._failures.clear()
    assert gate.login(TOKEN) is not None


def test_a_token_is_drawn_or_long(monkeypatch):
    assert len(TokenGate().drawn) >= 32
    assert TokenGate().drawn != TokenGate().drawn
    assert TokenGate(TOKEN).drawn is None
    with pytest.raises(InvalidParameter, match="has 5 characters; it needs at least 16"):
        TokenGate("short")


def test_sessions_end_and_do_not_pile_up(monkeypatch):
    gate = TokenGate(TOKEN)
    names = [gate.login(TOKEN) for _ in range(security._SESSIONS + 1)]
    assert gate.session(names[0]) is None
    assert gate.session(names[-1]) is not None
    now = security.time.monotonic()
    monkeypatch.setattr(security.time, "monotonic", lambda: now + 13 * 3600.0)
    assert gate.session(names[-1]) is None


def test_beyond_loopback_even_reading_needs_the_token(made, team):
    board = made(team / "ledgers", locked=True)
    for path in ("/", "/calculator", "/models", "/open", f"/ledger/{board.book('run')}"):
        assert board.get(path).headers["location"].startswith("/login?next=/")
    for path in ("/live?page=1", f"/ledger/{board.book('run')}/live"):
        assert board.get(path).status_code == 401
    assert "run" not in board.get("/login").text.replace("running", "")
    board.login()
    assert "run" in board.get("/").text


@pytest.mark.parametrize(
    ("host", "inside"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("192.168.1.5", False), ("budget.example.org", False), ("", False)],
)  # fmt: skip
def test_what_is_loopback(host, inside):
    assert is_loopback(host) is inside


def test_ids_tell_nothing_of_places_and_passwords(made, team):
    from ledgerwood.dashboard.sources import DatabaseSource

    one, other = (DatabaseSource(f"postgresql://ann:{word}@db.example/team") for word in ("secret", "changed"))
    assert one.id_of("adult") == other.id_of("adult")
    assert "secret" not in one.name + one.identity
    board = made(team / "ledgers")
    assert str(team) not in board.get("/").text + board.get(f"/ledger/{board.book('run')}").text


def test_a_ledger_is_found_by_its_id_and_no_path(made, team):
    (team / "secret.ledger.jsonl").write_text("secret")
    (team / "ledgers" / "link.ledger.jsonl").symlink_to(team / "secret.ledger.jsonl")
    lw.Ledger.open(team / "ledgers" / "a.txt", dataset="x", budget=budget(), unit=lw.PrivacyUnit.ROW).close()
    board = made(team / "ledgers")
    assert [book.key for book in board.shelf.books()] == ["run.ledger.jsonl"]
    for wanted in ("run.ledger.jsonl", "..%2fsecret.ledger.jsonl", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%00"):
        assert board.get(f"/ledger/{wanted}").status_code == 404
