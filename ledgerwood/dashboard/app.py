"""The pages of the dashboard, by address.

Whatever reads files, databases or prices runs in a thread: the server goes on answering meanwhile.
"""

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, TypeVar, final
from urllib.parse import parse_qsl

import anyio
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ledgerwood.dashboard import calculator, opening, views
from ledgerwood.dashboard.books import Book
from ledgerwood.dashboard.models import Models
from ledgerwood.dashboard.pages import STATIC, Pages, static
from ledgerwood.dashboard.security import Guard, Login, TokenGate, is_form_of
from ledgerwood.dashboard.shelf import Shelf
from ledgerwood.errors import PrivacyError

P = ParamSpec("P")
T = TypeVar("T")
_MOST_FIELDS = 40
_READERS, _MOST_WAITING = 6, 24
"""Threads that read, and requests that may wait for them or for the calculator; more are told to come again."""


@final
class Dashboard:
    """What answers requests.

    Args:
        shelf: the ledgers.
        models: the saved models.
        gate: token and sessions.
        port: for the name of the cookie: cookies do not know ports.
        locked: whether even reading needs a session, as beyond loopback.
    """

    def __init__(self, *, shelf: Shelf, models: Models, gate: TokenGate, port: int, locked: bool) -> None:
        self.shelf, self.models, self.gate, self.locked = shelf, models, gate, locked
        self.cookie = f"ledgerwood-{port}"
        self.pages = Pages()
        self._reading, self._pricing = CapacityLimiter(_READERS), CapacityLimiter(1)

    def routes(self) -> list[Route]:
        """Every address that is answered."""
        book, model = "{book:str}", "{model:str}"
        return [
            Route("/static/{name:str}", self.file, methods=["GET"]),
            Route("/favicon.ico", _no_icon, methods=["GET"]),
            Route("/login", self.login, methods=["GET", "POST"]),
            Route("/logout", self.logout, methods=["POST"]),
            Route("/", self.read(self.home), methods=["GET"]),
            Route("/live", self.read(self.home_live), methods=["GET"]),
            Route(f"/ledger/{book}", self.read(self.ledger), methods=["GET"]),
            Route(f"/ledger/{book}/live", self.read(self.ledger_live), methods=["GET"]),
            Route(f"/ledger/{book}/grant/{{entry:int}}", self.read(self.grant), methods=["GET"]),
            Route(f"/ledger/{book}/lines", self.read(self.lines), methods=["GET"]),
            Route(f"/ledger/{book}/verify", self.change(self.verify), methods=["POST"]),
            Route("/models", self.read(self.model_list), methods=["GET"]),
            Route(f"/model/{model}", self.read(self.model), methods=["GET"]),
            Route("/calculator", self.read(self.calculator), methods=["GET"]),
            Route("/calculator/answer", self.read(self.calculator_answer), methods=["GET"]),
            Route("/calculator/curves", self.read(self.calculator_curves), methods=["GET"]),
            Route("/open", self.change(self.open), methods=["GET", "POST"]),
        ]

    # Who may ask

    def session(self, request: Request) -> Login | None:
        """The session of a request."""
        return self.gate.session(request.cookies.get(self.cookie))

    def read(self, page: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """A page that anyone may read, unless even reading needs a session."""

        @functools.wraps(page)
        async def asked(request: Request) -> Response:
            if self.locked and self.session(request) is None:
                return _to_login(request)
            return await page(request)  # type: ignore[no-any-return]

        return asked

    def change(self, page: Callable[[Request, dict[str, str]], Any]) -> Callable[[Request], Any]:
        """A page that needs a session, and whose forms must carry the session's own token."""

        @functools.wraps(page)
        async def asked(request: Request) -> Response:
            session = self.session(request)
            if session is None:
                return _to_login(request)
            form = await _form(request) if request.method == "POST" else {}
            if request.method == "POST" and not is_form_of(session, form.get("csrf", "")):
                raise HTTPException(403, "The form is not of this session: load the page again.")
            return await page(request, form)  # type: ignore[no-any-return]

        return asked

    def page(self, request: Request, template: str, values: dict[str, object], status: int = 200) -> Response:
        """A whole page, or a part of one."""
        session = self.session(request)
        common: dict[str, object] = {
            "path": request.url.path,
            "session": session is not None,
            "csrf": "" if session is None else session.csrf,
            "locked": self.locked,
            "has_models": self.models.wanted,
        }
        return Response(self.pages.render(template, common | values), status, media_type="text/html")

    async def in_thread(self, limiter: CapacityLimiter, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What takes a while, in a thread; refused where too many wait already."""
        if limiter.statistics().tasks_waiting >= _MOST_WAITING:
            raise HTTPException(503, "Too many requests wait for an answer: try again in a few seconds.")
        return await to_thread.run_sync(functools.partial(work, *args, **kwargs), limiter=limiter)

    # Ledgers

    async def home(self, request: Request) -> Response:
        """All ledgers."""
        found = await self.in_thread(self._reading, views.home, self.shelf, _page(request))
        return self.page(request, "home.html", found)

    async def home_live(self, request: Request) -> Response:
        """The part of it that changes, or nothing if it did not."""
        found = await self.in_thread(self._reading, views.home, self.shelf, _page(request))
        return self._live(request, "home_live.html", found)

    async def ledger(self, request: Request) -> Response:
        """One ledger."""
        found = await self._ledger(request)
        return self.page(request, "ledger.html", found)

    async def ledger_live(self, request: Request) -> Response:
        """The part of it that changes, or nothing if it did not."""
        book = await self._book(request)
        seen = request.query_params.get("stamp", "")
        if seen and seen == await self.in_thread(self._reading, views.ledger_stamp, self.shelf, book):
            return Response(status_code=204)
        return self._live(request, "ledger_live.html", await self._ledger(request))

    async def grant(self, request: Request) -> Response:
        """One grant with its draws."""
        entry = int(request.path_params["entry"])
        book = await self._book(request)
        found = await self.in_thread(self._reading, views.grant, self.shelf, book, entry, _page(request))
        if found is None:
            raise HTTPException(404, f"Entry {entry} of this ledger is not a grant.")
        return self.page(request, "grant.html", found)

    async def lines(self, request: Request) -> Response:
        """The entries as a ledger file holds them, for the reader's own verification."""
        name, text = await self.in_thread(self._reading, views.lines, await self._book(request))
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="application/jsonl", headers=headers)

    async def verify(self, request: Request, form: dict[str, str]) -> Response:
        """Have a ledger read and verified once more."""
        book = await self._book(request)
        await self.in_thread(self._reading, self.shelf.verify_again, book)
        return RedirectResponse(f"/ledger/{book.id}", 303)

    async def open(self, request: Request, form: dict[str, str]) -> Response:
        """Open a new ledger."""
        if request.method == "GET":
            return self.page(request, "open.html", opening.form_values(self.shelf, {}, None))
        try:
            book_id = await self.in_thread(self._reading, opening.open_ledger, self.shelf, form)
        except (PrivacyError, OSError) as refused:
            values = opening.form_values(self.shelf, form, str(refused))
            return self.page(request, "open.html", values, 422)
        return RedirectResponse(f"/ledger/{book_id}", 303)

    # Models and the calculator

    async def model_list(self, request: Request) -> Response:
        """All models, side by side."""
        found = await self.in_thread(self._reading, views.models, self.models, self.shelf)
        return self.page(request, "models.html", found)

    async def model(self, request: Request) -> Response:
        """One model."""
        wanted = request.path_params["model"]
        found = await self.in_thread(self._reading, views.model, self.models, self.shelf, wanted)
        if found is None:
            raise HTTPException(404, "There is no such model.")
        return self.page(request, "model.html", found)

    async def calculator(self, request: Request) -> Response:
        """The calculator with its answer."""
        found = await self.in_thread(self._pricing, views.calculation, _query(request), curves=True)
        return self.page(request, "calculator.html", found, 422 if found["refused"] else 200)

    async def calculator_answer(self, request: Request) -> Response:
        """The answer alone, while a slider moves."""
        found = await self.in_thread(self._pricing, views.calculation, _query(request), curves=False)
        return self.page(request, "calculator_answer.html", found)

    async def calculator_curves(self, request: Request) -> Response:
        """The curves at the answer."""
        found = await self.in_thread(self._pricing, views.calculation, _query(request), curves=True)
        return self.page(request, "calculator_curves.html", found)

    # Login, files, errors

    async def login(self, request: Request) -> Response:
        """The form for the token."""
        target = views.local_target(request.query_params.get("next", "/"))
        if request.method == "GET":
            return self.page(request, "login.html", {"refused": None, "target": target})
        form = await _form(request)
        target = views.local_target(form.get("next", "/"))
        name = self.gate.login(form.get("token", ""))
        if name is None:
            await anyio.sleep(0.2)
            refused = "This is not the token that the dashboard printed when it started, or there were too many tries."
            return self.page(request, "login.html", {"refused": refused, "target": target}, 403)
        answer = RedirectResponse(target, 303)
        secure = request.headers.get("origin", "").startswith("https://")
        answer.set_cookie(self.cookie, name, httponly=True, samesite="strict", secure=secure, path="/")
        return answer

    async def logout(self, request: Request) -> Response:
        """End the session."""
        session = self.session(request)
        form = await _form(request)
        if session is not None and is_form_of(session, form.get("csrf", "")):
            self.gate.logout(request.cookies.get(self.cookie))
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(self.cookie, path="/")
        return answer

    async def file(self, request: Request) -> Response:
        """The style sheet and the script."""
        name = request.path_params["name"]
        if name not in STATIC:
            raise HTTPException(404, "There is no such file.")
        headers = {"cache-control": "private, max-age=86400"}
        return Response(static(name), media_type=STATIC[name], headers=headers)

    async def failed(self, request: Request, error: Exception) -> Response:
        """A page that says what was wrong, or a line for what is no page."""
        status, words = 500, "The dashboard failed at this. Its own output says more."
        if isinstance(error, HTTPException):
            status, words = error.status_code, error.detail
        elif isinstance(error, PrivacyError):
            status, words = 500, str(error)
        if "text/html" not in request.headers.get("accept", "text/html"):
            return PlainTextResponse(f"{status}: {words}\n", status)
        return self.page(request, "failed.html", {"status": status, "words": words}, status)

    async def _book(self, request: Request) -> Book:
        book = await self.in_thread(self._reading, self.shelf.find, request.path_params["book"])
        if book is None:
            raise HTTPException(404, "There is no such ledger here: it was removed, or the address is of another one.")
        return book

    async def _ledger(self, request: Request) -> dict[str, object]:
        book = await self._book(request)
        return await self.in_thread(self._reading, views.ledger, self.shelf, self.models, book, _page(request))

    def _live(self, request: Request, template: str, found: dict[str, object]) -> Response:
        if request.query_params.get("stamp", "") == found["stamp"]:
            return Response(status_code=204)
        return self.page(request, template, found)


def create_app(
    shelf: Shelf, models: Models, gate: TokenGate, *, hosts: frozenset[str], port: int, locked: bool = False
) -> ASGIApp:
    """The application, behind its guard.

    Args:
        shelf: the ledgers; closed when the application ends, as the models are.
        models: the saved models.
        gate: token and sessions.
        hosts: the values of the header Host that are answered.
        port: where it will be reached.
        locked: whether even reading needs a session.
    """
    dashboard = Dashboard(shelf=shelf, models=models, gate=gate, port=port, locked=locked)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        shelf.read_all()
        yield
        models.close()
        shelf.close()

    handlers: dict[Any, Any] = {HTTPException: dashboard.failed, PrivacyError: dashboard.failed}
    app = Starlette(routes=dashboard.routes(), lifespan=lifespan, exception_handlers=handlers)
    return Guard(app, hosts=hosts)


async def _no_icon(_: Request) -> Response:
    return Response(status_code=204)


def _to_login(request: Request) -> Response:
    if request.method == "GET" and "live" not in request.url.path:
        return RedirectResponse(f"/login?next={views.local_target(request.url.path)}", 303)
    return PlainTextResponse("401: log in first, at /login\n", 401)


def _page(request: Request) -> int:
    text = request.query_params.get("page", "1")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 1


def _query(request: Request) -> dict[str, str]:
    return {key: value for key, value in request.query_params.items() if key in calculator.NAMES}


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, the last of each name."""
    body = await request.body()
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, strict_parsing=False
        )
    except ValueError as error:
        raise HTTPException(400, "The form cannot be read.") from error
    return dict(pairs)
