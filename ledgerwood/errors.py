"""The library's exceptions, one tree rooted at `PrivacyError`, and its one kind of warning.

Each message names the parameter, its value, the accepted range and the unit.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledgerwood.verification import FederationReport, LedgerFailure, LedgerReport


class PrivacyWarning(UserWarning):
    """A use that is allowed but weakens a privacy guarantee, or hides its total; the message names the remedy."""


class PrivacyError(Exception):
    """Root of every exception that this library raises on purpose."""


class InvalidParameter(PrivacyError, ValueError):
    """A value outside its bound: not a number, not positive, not a probability.

    Args:
        message: name, value, bound and unit.
        parameter: the name alone, where one value is out of its bound.
        rest: the message after the name: value, bound and unit.
    """

    def __init__(self, message: str, *, parameter: str | None = None, rest: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.rest = rest

    def renamed(self, parameter: str) -> "InvalidParameter":
        """Returns the same error with the parameter's name in the caller's signature."""
        return InvalidParameter(f"{parameter}={self.rest}", parameter=parameter, rest=self.rest)


class AdjacencyMismatch(PrivacyError, ValueError):
    """Two objects that must have the same adjacency (relation of neighbouring data sets) have different ones."""


class UnsupportedEvent(PrivacyError, ValueError):
    """No proven privacy bound is known for this event, or for this event under this adjacency."""


class CalibrationFailed(PrivacyError, ValueError):
    """No parameter in the searched range fits the budget."""


class BudgetExceeded(PrivacyError):
    """The ledger's filter refuses a grant. Nothing was spent, no row was read.

    Args:
        message: what was asked for and what is left.
        requested: the charge, by currency ("epsilon" and "delta", or "mu").
        remaining: the ledger's remaining budget, in the same currency.
    """

    def __init__(
        self,
        message: str,
        *,
        requested: Mapping[str, float] | None = None,
        remaining: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(message)
        self.requested: dict[str, float] = dict(requested or {})
        self.remaining: dict[str, float] = dict(remaining or {})


class ScratchFull(PrivacyError, OSError):
    """The scratch folder has no room for the encoded rows. Nothing was spent."""


class WorkersLost(PrivacyError, RuntimeError):
    """A cluster's workers or scheduler were lost, or rows of theirs, and could not be had again. The message says what
    was spent.
    """


class FederationRefused(PrivacyError):
    """Owners of rows do not take part in a fit; the message has their reasons. Nothing was spent by the server."""


class OwnersLost(PrivacyError, RuntimeError):
    """Too few owners of rows answered a question, and the fit ended; the message says what was spent."""


class BadMessage(PrivacyError, ValueError):
    """Bytes that are no message of a federation, or a value that does not travel in one."""


class DrawRefused(PrivacyError):
    """The grant does not hold the event that was asked for, or no longer does."""


class RoundViolation(PrivacyError):
    """A release that is not part of the round's draw, or a round that is already closed."""


class NotASum(RoundViolation):
    """A query that is more than sums over rows, where the rows lie in several parts or processes."""


class SumRefused(PrivacyError):
    """A client of secure aggregation refuses what a server asks for, or a server what a client sends. Nothing about
    anybody's values was told; the message says which rule forbids it.
    """


class SumIncomplete(PrivacyError):
    """A secure sum that cannot be unmasked (yet): the message names the clients and the step that are missing."""


class RunFailed(PrivacyError):
    """A run of a private selection failed. Its budget is spent and nothing is released, not even why it failed."""


class SchemaError(PrivacyError, ValueError):
    """Columns, types or shapes that are not the declared schema's, or a schema is missing.

    It is raised before any budget is spent, and depends on names, types and shapes only. Exceptions are
    `SchemaReport.raise_for_problems` and readers of files: their errors depend on values, and are for the data owner.
    """


class FilesChanged(SchemaError):
    """A file of rows changed, or vanished, while it was read or between two readings; the message says what it cost."""


class SchemaTypeError(SchemaError, TypeError):
    """A column of a type that its declaration cannot have."""


class LedgerError(PrivacyError):
    """A ledger that cannot be used as asked: copied, opened with other terms, unreadable."""


class LedgerWriteFailed(LedgerError, OSError):
    """An entry could not be made durable (a full disk, say). It was not recorded and nothing was granted."""


class LedgerCorrupted(LedgerError):
    """A ledger that does not verify; the message names the first entry that fails.

    Args:
        message: the entry and what is wrong with it.
        report: the result of `verify_ledger` for all entries, if the only fault is a refuted charge; else None.
        federation: the result of `verify_federation`, if all ledgers are in order and something in them is refuted.
        entry: the first entry that fails, where it is known.
        failure: from `verify_ledger`, what can still be said of a ledger that is not in order; else None.
    """

    def __init__(
        self,
        message: str,
        *,
        report: "LedgerReport | None" = None,
        federation: "FederationReport | None" = None,
        entry: int | None = None,
        failure: "LedgerFailure | None" = None,
    ) -> None:
        super().__init__(message)
        self.entry = entry
        self.failure = failure
        self.report = report
        self.federation = federation


class DataUnavailable(PrivacyError, OSError):
    """A known data set that is neither on disk nor reachable over the network."""


class ReplayFailed(PrivacyError):
    """A record and replay of a fit met something that it cannot compare, so its result would prove nothing."""


class AuditFailed(PrivacyError):
    """An audit could not read the outputs, or the mechanism failed. The claim is neither supported nor refuted."""
