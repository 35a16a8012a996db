"""What a request must satisfy before any page sees it, and what each response says of itself.

The server is read by whoever reaches it, and a browser can be made to reach it by any page that its owner visits. So:
only known names of this server are answered (DNS rebinding), nothing is changed without a session, a token of the form
and an origin that is this server, and no response may run a script, load anything or be framed elsewhere.
"""

import hmac
import secrets
import threading
import time
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ledgerwood.errors import InvalidParameter

TOKEN_VARIABLE: Final = "LEDGERWOOD_DASHBOARD_TOKEN"
LARGEST_BODY: Final = 16_384
"""Bytes of a form."""
_LONGEST_TARGET = 4_096
_SHORTEST_TOKEN = 16
_LASTS = 12 * 3600.0
"""Seconds of a session."""
_SESSIONS = 64
_FAILURES, _PER = 10, 60.0
"""Failed logins, and the seconds within which no more are taken."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = (
    ("content-security-policy", POLICY),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    # Not "no-referrer": with that, browsers send a form's origin as "null", and it could not be compared.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """One login.

    Args:
        csrf: what each of its forms must carry.
        until: when it ends, on the monotonic clock.
    """

    csrf: str
    until: float


@final
class TokenGate:
    """The token, and the sessions that were opened with it.

    Args:
        token: at least 16 characters; drawn at random by default.

    Raises:
        InvalidParameter: a shorter token.
    """

    __slots__ = ("_failures", "_lock", "_sessions", "_token", "drawn")

    def __init__(self, token: str | None = None) -> None:
        if token is not None and len(token) < _SHORTEST_TOKEN:
            raise InvalidParameter(
                f"the token in {TOKEN_VARIABLE} has {len(token)} characters; it needs at least {_SHORTEST_TOKEN}, "
                "which nobody can guess (unit: characters)"
            )
        self.drawn = secrets.token_urlsafe(24) if token is None else None
        """The token that was drawn, to be told to who started the server; None where it was given."""
        self._token = (token or self.drawn or "").encode()
        self._sessions: dict[str, Login] = {}
        self._failures: list[float] = []
        self._lock = threading.Lock()

    def login(self, token: str) -> str | None:
        """A new session's name, if the token is right; nothing is compared for a minute after ten wrong ones."""
        now = time.monotonic()
        with self._lock:
            self._failures = [at for at in self._failures if now - at < _PER]
            if len(self._failures) >= _FAILURES:
                return None
            if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._token):
                self._failures.append(now)
                return None
            self._sessions = {name: one for name, one in self._sessions.items() if one.until > now}
            while len(self._sessions) >= _SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            name = secrets.token_urlsafe(24)
            self._sessions[name] = Login(csrf=secrets.token_urlsafe(24), until=now + _LASTS)
            return name

    def session(self, name: str | None) -> Login | None:
        """The session of a cookie, if there is one and it has not ended."""
        with self._lock:
            found = None if name is None else self._sessions.get(name)
            return found if found is not None and found.until > time.monotonic() else None

    def logout(self, name: str | None) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(name or "", None)


def is_form_of(session: Login, csrf: str) -> bool:
    """Whether a form was given out in this session."""
    return hmac.compare_digest(session.csrf.encode(), csrf.encode("utf-8", "surrogatepass"))


def allowed_hosts(names: Iterable[str], port: int) -> frozenset[str]:
    """The values of the header Host that are answered: each name with the port, and alone."""
    found = set()
    for name in names:
        plain = f"[{name}]" if ":" in name and not name.startswith("[") else name
        found |= {plain.lower(), f"{plain.lower()}:{port}"}
    return frozenset(found)


@final
class Guard:
    """Refuses what no page should see, and sets the headers of every response.

    Args:
        app: what answers the rest.
        hosts: the values of Host that are answered.
    """

    __slots__ = ("_app", "_hosts")

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(*refusal, send)
            return

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                present = {name for name, _ in headers}
                headers += _encoded(HEADERS)
                if b"cache-control" not in present:
                    headers.append((b"cache-control", b"no-store"))
            await send(message)

        await self._app(scope, _bounded(receive), answered)

    def _refusal(self, scope: MutableMapping[str, Any]) -> tuple[int, str] | None:
        """The status and the reason of a request that is not answered."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0].decode("latin-1").lower() not in self._hosts:
            return 421, "This server does not answer to that name. Name it with --name when you start the dashboard."
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "Only GET, HEAD and POST are answered."
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > _LONGEST_TARGET:
            return 414, f"The address has more than {_LONGEST_TARGET} bytes."
        return self._form_refusal(headers, hosts[0].decode("latin-1").lower()) if scope["method"] == "POST" else None

    @staticmethod
    def _form_refusal(headers: list[tuple[bytes, bytes]], host: str) -> tuple[int, str] | None:
        values = {name: value.decode("latin-1") for name, value in headers}
        if values.get(b"origin", "").lower() not in (f"http://{host}", f"https://{host}"):
            return 403, "A form is taken from this server's own pages only (header Origin)."
        if values.get(b"sec-fetch-site", "same-origin") != "same-origin":
            return 403, "A form is taken from this server's own pages only (header Sec-Fetch-Site)."
        if not values.get(b"content-type", "").startswith("application/x-www-form-urlencoded"):
            return 415, "A form must be sent as application/x-www-form-urlencoded."
        length = values.get(b"content-length", "")
        if not (length.isascii() and length.isdigit()):
            return 411, "A form must state its length."
        if len(length) > 9 or int(length) > LARGEST_BODY:
            return 413, f"A form has at most {LARGEST_BODY} bytes."
        return None


def _bounded(receive: Receive) -> Receive:
    """At most as many bytes as a form may have, whatever was stated."""
    seen = 0

    async def received() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > LARGEST_BODY:
                return {"type": "http.disconnect"}
        return message

    return received


async def _refuse(status: int, reason: str, send: Send) -> None:
    body = f"{status}: {reason}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *_encoded(HEADERS),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
