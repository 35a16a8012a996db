"""The result of a test kit: each check by its name, with its verdict; what could not be looked at is no pass."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, final

from ledgerwood.pages.shown import Told
from ledgerwood.recording.opening import unreleased

Verdict = Literal["passed", "failed", "not looked at", "does not apply"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KitCheck:
    """One check of a test kit.

    Args:
        name: of the check.
        verdict: "not looked at" where the check could not be made, which is no pass; "does not apply" where the
            plug-in states that it has no such thing, or refuses it before anything is spent.
        why: what was found, or what was looked at.
    """

    name: str
    verdict: Verdict
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}" + (f" ({self.why})" if self.why else "")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KitReport(Told):
    """What a test kit found out about a plug-in, on synthetic rows.

    Args:
        of: the plug-in.
        checks: all that were made, in order.
    """

    of: str
    checks: tuple[KitCheck, ...]

    @property
    def ok(self) -> bool:
        """True if every check passed or does not apply; False if one failed, or could not be made."""
        return bool(self.checks) and not self.faults

    @property
    def faults(self) -> tuple[KitCheck, ...]:
        """The checks that failed, or could not be made."""
        return tuple(check for check in self.checks if check.verdict in ("failed", "not looked at"))

    def __getitem__(self, name: str) -> KitCheck:
        """The check of this name; raises KeyError."""
        found = next((check for check in self.checks if check.name == name), None)
        if found is None:
            raise KeyError(f"{name!r}: the checks are {', '.join(check.name for check in self.checks)}")
        return found

    def __str__(self) -> str:
        passed, apart = (sum(check.verdict == kind for check in self.checks) for kind in ("passed", "does not apply"))
        does = "does" if apart == 1 else "do"
        head = f"{self.of}: {passed} of {len(self.checks)} checks passed, {len(self.faults)} did not"
        return "\n".join([f"{head}, {apart} {does} not apply", *(f"  {line}" for line in _lines(self.checks))])

    def require_ok(self) -> None:
        """Raise where a check failed, or could not be made.

        Raises:
            AssertionError: it names the checks and says what was found.
        """
        __tracebackhide__ = True
        if not self.ok:
            raise AssertionError("\n".join([f"{self.of} is not as a plug-in has to be:", *_lines(self.faults)]))


def _lines(checks: tuple[KitCheck, ...]) -> list[str]:
    """Each check; those that could not be made for one and the same reason together, with the reason once."""
    lines, told = [], set()
    for check in checks:
        alike = [each.name for each in checks if (each.verdict, each.why) == (check.verdict, check.why)]
        if check.verdict != "not looked at" or len(alike) == 1:
            lines.append(str(check))
        elif check.why not in told:
            told.add(check.why)
            lines.append(f"{', '.join(alike)}: not looked at ({check.why})")
    return lines


class Failure(Exception):
    """A check has found something; its text says what."""


class Inapplicable(Exception):
    """The plug-in has nothing that the check could look at, and says so itself."""


@final
@dataclass(slots=True, kw_only=True)
class Checks:
    """The checks while they are made, one after another."""

    made: list[KitCheck] = field(default_factory=list)

    def make(self, name: str, check: Callable[[], str | None]) -> None:
        """Make a check; what it raises is its verdict, whatever it is."""
        self.made.append(_verdict(name, check))


def _verdict(name: str, check: Callable[[], str | None]) -> KitCheck:
    try:
        why = check()
    except Failure as found:
        return KitCheck(name=name, verdict="failed", why=str(found))
    except Inapplicable as reason:
        return KitCheck(name=name, verdict="does not apply", why=str(reason))
    except Exception as error:  # noqa: BLE001  # of the plug-in, of a replay that cannot compare, of the kit itself
        return KitCheck(name=name, verdict="not looked at", why=f"{type(error).__name__}: {error}")
    return KitCheck(name=name, verdict="passed", why=why or "")


def require(holds: object, found: str) -> None:
    """End the check with what it found, unless this holds."""
    if not holds:
        raise Failure(found)


@contextmanager
def not_released() -> Iterator[None]:
    """Fits in this block are nobody's release: they are not counted, and give no privacy warnings."""
    with unreleased():
        yield
