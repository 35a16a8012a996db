"""The terms of a session as an owner's account records them, before anything of it is answered."""

import re
from dataclasses import dataclass
from typing import final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.events.base import require_event


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTerms:
    """The terms of a federation's session, as a server proposes them and a client records them.

    Args:
        session: 16 bytes that name the session.
        plan: 32 bytes, the SHA-256 digest of the public plan.
        event: the plan's event: everything that the session may release.
        unit: the unit that the federation protects.
        server: the fingerprint of the server's key, or its name: 1 to 64 printable characters without a space.
        delta: the delta of the plan's charge; ignored by filters whose charges have none. None means 0 for a pure
            event, and all the delta that remains for any other.
        active: whether the session is secure against an active server.

    Raises:
        InvalidParameter: a value of another type or length.
    """

    session: bytes
    plan: bytes
    event: Event
    unit: PrivacyUnit
    server: str
    delta: float | None = None
    active: bool = False

    def __post_init__(self) -> None:
        require_bytes("session", self.session, 16)
        require_bytes("plan", self.plan, 32)
        require_event(self.event)
        if not isinstance(self.unit, PrivacyUnit):
            raise _validate.fail("unit", self.unit, "a PrivacyUnit (ROW, USER)", "privacy unit")
        require_server(self.server)
        _validate.flag("active", self.active)

    @property
    def purpose(self) -> str:
        """What the client's grant says of them, after the mark of a resumable grant."""
        return f"federation {self.session.hex()} plan {self.plan.hex()} server {self.server}"


def require_server(server: object) -> None:
    """Refuse what is no name of a server in a ledger.

    Raises:
        InvalidParameter: so it is.
    """
    if not isinstance(server, str) or not server.isprintable() or not re.fullmatch(r"\S{1,64}", server):
        raise _validate.fail("server", server, "1 to 64 printable characters without a space", "text")


def require_bytes(name: str, value: object, length: int) -> None:
    """Refuse what is not bytes of the stated length.

    Raises:
        InvalidParameter: so it is.
    """
    if not isinstance(value, bytes) or len(value) != length:
        raise _validate.fail(name, value, f"{length} bytes", "bytes")
