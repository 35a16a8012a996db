"""Verify a ledger independently: its chain, its rules, and every charge.

docs/explanation/ledger.md#verification. No code here is shared with the ledger or the accounting that it checks.
"""

import threading
from dataclasses import replace
from pathlib import Path

from ledgerwood.accounting.ledger import Ledger, LedgerRecord
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError
from ledgerwood.verification.ledgers import checkpoints as _checkpoints
from ledgerwood.verification.ledgers.books import VerifiedBook, at_checkpoint, entry_of
from ledgerwood.verification.ledgers.bounds import divergences, points
from ledgerwood.verification.ledgers.effort import Effort, TooMuchWork, counted
from ledgerwood.verification.ledgers.filters import GrantVerdict
from ledgerwood.verification.ledgers.reports import LedgerFailure, LedgerReport
from ledgerwood.verification.ledgers.signatures import check_signature, database_lines, read_signature, signature_of

_MALFORMED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    TooMuchWork,
)
_PRECISION = threading.Lock()  # an mpmath context has one working precision for all threads


def verify_ledger(
    path_or_record: str | Path | LedgerRecord | Ledger,
    *,
    dataset: str | None = None,
    head: str | None = None,
    signature: str | Path | None = None,
    public_key: str | Path | None = None,
    from_checkpoint: bool = False,
) -> LedgerReport:
    """Check a ledger file, a data set's ledger in a database, or a model's ledger record, entry by entry.

    It checks form, version, order and hashes; that grants are within the budget by the filter, and draws within their
    grants. It bounds each plan's privacy cost from both sides with a second implementation, and finds the charge
    confirmed, unconfirmed or refuted: see `GrantVerdict`. If grants are unconfirmed, a report is still returned: look
    at its `verdict`.

    Args:
        path_or_record: a ledger file, the URL of a ledger database (extra: sql), a record, or an open ledger,
            which is checked as far as it goes now.
        dataset: the label that the ledger must have; needed for a database.
        head: the hash that the last entry must have. Without it, removed last entries, or a chain that was rebuilt from
            the start, are not detected.
        signature: a file that `sign_ledger` wrote: the ledger must begin with the entries that were signed.
        public_key: PEM file of the Ed25519 key that the signature must be of.
        from_checkpoint: look only at the last checkpoint and what follows it, although the rest may be there: the time
            does not depend on the rest.

    Raises:
        LedgerCorrupted: names the first entry that fails. Where that is a refuted charge of a ledger that is otherwise
            in order, it carries the whole report in `report`; else what can still be said in `failure`.
        LedgerError: the file or database cannot be read, or has no checkpoint where one was asked for.
        InvalidParameter: a signature without a key, or the other way round.
    """
    if (signature is None) != (public_key is None):
        raise InvalidParameter("signature and public_key must be given together (unit: files)")
    lines, report = checked(path_or_record, dataset, head, from_checkpoint=from_checkpoint)
    if signature is not None and public_key is not None:
        check_signature(lines, read_signature(signature), public_key)
        if report.trusted:
            return replace(report, trusted_to="signer")
    return report


def sign_ledger(
    path_or_record: str | Path | LedgerRecord | Ledger,
    *,
    private_key: str | Path,
    dataset: str | None = None,
    allow_unconfirmed: bool = False,
) -> str:
    """Verify a ledger, and sign its head: one line to keep in a file (docs/explanation/ledger.md#signatures).

    Args:
        path_or_record: as in `verify_ledger`.
        private_key: PEM file of an Ed25519 private key, not encrypted.
        dataset: as in `verify_ledger`.
        allow_unconfirmed: sign although the verifier could not confirm every charge. A signature says who vouches for
            the ledger, so that by default only a confirmed one is signed.

    Raises:
        LedgerCorrupted, LedgerError: as in `verify_ledger`, or a charge is unconfirmed; nothing is signed.
        InvalidParameter: no such key.
    """
    lines, report = checked(path_or_record, dataset, None)
    if report.trusted and not allow_unconfirmed:
        raise LedgerError(
            f"the ledger begins with a checkpoint, so {report.trusted} entries before it were not verified; nothing "
            "was signed (allow_unconfirmed=True signs all the same)"
        )
    open_ = [found for found in report.verdicts if found.verdict != "confirmed"]
    if open_ and not allow_unconfirmed:
        raise LedgerError(
            f"{len(open_)} of {report.grants} grants are unconfirmed, the first at entry {open_[0].entry}: "
            f"{open_[0].reason}; nothing was signed (allow_unconfirmed=True signs all the same)"
        )
    return signature_of(lines, private_key)


def checked(
    path_or_record: str | Path | LedgerRecord | Ledger,
    dataset: str | None,
    head: str | None,
    *,
    refute: bool = True,
    known: dict[str, GrantVerdict] | None = None,
    from_checkpoint: bool = False,
) -> tuple[list[str], LedgerReport]:
    """The lines and the report of a ledger; a refuted charge raises only if `refute`.

    `known` has verdicts of other ledgers by filter, event and charge, on which alone a verdict depends: they are taken
    from it, and added to it.
    """
    kept, cut = None, None
    if isinstance(path_or_record, str) and "://" in path_or_record:
        lines, kept = database_lines(path_or_record, dataset, from_checkpoint=from_checkpoint)
    else:
        lines, cut = _lines(path_or_record, from_checkpoint=from_checkpoint)
    if from_checkpoint and not lines:
        raise LedgerError(
            "the ledger has no checkpoint to begin at; verify all of it, or add one: `ledgerwood ledger checkpoint`"
        )
    try:
        if cut is not None:
            raise cut
        report = _report(lines, head, kept, dataset, known)
    except LedgerCorrupted as error:
        error.failure = None if error.entry is None else _failure(error, lines)
        raise
    if refute and report.verdict == "refuted":
        first = next(found for found in report.verdicts if found.verdict == "refuted")
        raise LedgerCorrupted(f"entry {first.entry}: {first.reason}", report=report, entry=first.entry)
    return lines, report


def _report(
    lines: list[str], head: str | None, kept: str | None, dataset: str | None, known: dict[str, GrantVerdict] | None
) -> LedgerReport:
    """The report of lines whose chain holds, ends as it should, and is of the right data set."""
    with _PRECISION, counted(Effort()) as effort:
        points.forget()
        divergences.forget()
        report = _verified(lines, head, effort, known)
    if kept not in (None, report.head):
        last = report.trusted + len(lines) - 1
        raise LedgerCorrupted(
            f"entry {last}: the chain ends with hash {report.head}, the database's head is {kept}: "
            "its tail was cut off or added to",
            entry=last,
        )
    if dataset not in (None, report.dataset):
        raise LedgerCorrupted(f"entry 0: the ledger is of data set {report.dataset!r}, not of {dataset!r}", entry=0)
    return report


def _failure(error: LedgerCorrupted, lines: list[str]) -> LedgerFailure:
    """What can still be said: the entries before the one that fails are verified once more, alone."""
    entry, start = 0 if error.entry is None else error.entry, _checkpoints.start_of(lines)
    sound = _report(lines[: entry - start], None, None, None, None) if entry > start else None
    reason = str(error).removeprefix(f"entry {entry}: ")
    return LedgerFailure(entry=entry, reason=reason, entries=start + len(lines), sound=sound)


def _verified(
    lines: list[str], head: str | None, effort: Effort, known: dict[str, GrantVerdict] | None
) -> LedgerReport:
    book: VerifiedBook | None = None
    start = _checkpoints.start_of(lines)
    for index, line in enumerate(lines, start=start):
        try:
            first = None if start else "0" * 64
            record = entry_of(line, index, book.head if book is not None else first)
            if book is None:
                book = at_checkpoint(record, effort, known) if start else VerifiedBook(record, effort, known)
            else:
                book.add(record)
        except _MALFORMED as error:
            raise LedgerCorrupted(f"entry {index}: {error}", entry=index) from error
    if book is None:
        raise LedgerCorrupted("entry 0: the ledger is empty", entry=0)
    if head is not None and book.head != head:
        last = start + len(lines) - 1
        raise LedgerCorrupted(
            f"entry {last}: the ledger ends with hash {book.head}, but {head} was expected: "
            "its tail was cut off or added to, or its chain was rebuilt",
            entry=last,
        )
    return book.report()


def _lines(
    path_or_record: str | Path | LedgerRecord | Ledger, *, from_checkpoint: bool
) -> tuple[list[str], LedgerCorrupted | None]:
    """The lines that can be read, and the error of the first one that cannot."""
    if isinstance(path_or_record, Ledger):
        path_or_record = path_or_record.record()
    if isinstance(path_or_record, LedgerRecord):
        own = list(path_or_record.lines)
        return _checkpoints.since_last(own) if from_checkpoint else own, None
    path = Path(path_or_record)
    try:
        data = _checkpoints.tail_of(path) if from_checkpoint else path.read_bytes()
    except OSError as error:
        raise LedgerError(f"the ledger file {path} cannot be read: {error}") from error
    pieces = data.split(b"\n")
    lines = []
    for index, piece in enumerate(pieces[:-1]):
        try:
            lines.append(piece.decode("utf-8"))
        except UnicodeDecodeError as error:
            place = _checkpoints.start_of(lines) + index
            return lines, LedgerCorrupted(f"entry {place}: not UTF-8: {error}", entry=place)
    if pieces[-1]:
        place = _checkpoints.start_of(lines) + len(lines)
        cut = f"entry {place}: the line is cut short: it does not end in a newline"
        return lines, LedgerCorrupted(cut, entry=place)
    return lines, None
