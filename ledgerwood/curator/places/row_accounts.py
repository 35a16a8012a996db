"""What each row of an owner has left under an individual filter, on the owner's disk before an answer is sent.

The file of a session stands in a folder beside the owner's ledger. It depends on the rows: nobody but the owner may
read it. docs/explanation/federation.md#federation-row-accounts; the format is docs/adr/0023-row-accounts.md.
"""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self, cast, final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events import Event, FilteredEvent
from ledgerwood.accounting.events.serial import from_json, to_json
from ledgerwood.accounting.individuals import FULL, row_costs
from ledgerwood.accounting.ledger.entries import canonical
from ledgerwood.curator.filtered import charge_weights
from ledgerwood.curator.inputs.values import KeyKind, UnitKeys
from ledgerwood.curator.places.federated_rows import OwnersQuestion
from ledgerwood.curator.queries.registry import TREES, Integers, name_of
from ledgerwood.curator.tables.vault import found_units, key_digests
from ledgerwood.curator.tables.vault_files import DIGEST, DIGEST_BYTES, SALT_BYTES, VaultFile
from ledgerwood.curator.views.tree_rows import RowBudgets
from ledgerwood.errors import LedgerCorrupted, LedgerError, LedgerWriteFailed, PrivacyError, RoundViolation

_FORMAT = "ledgerwood row accounts, 1"
_LEFT = np.dtype("<i8")
_CHECKSUM_BYTES = 32
_FIELDS = {"format", "session", "draw", "event", "round", "attempt", "rows", "salt", "keys"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedUpload:
    """The upload that rows are about to pay for.

    Args:
        session: its name, 32 hexadecimal digits.
        draw: the number of the filtered event among the draws of the server's grant.
        round, attempt: of the upload.
        last: round and attempt of the latest answer in this draw, by the owner's answers file; None: there is none, so
            that rows have their whole limits.
    """

    session: str
    draw: int
    round: int
    attempt: int
    last: tuple[int, int] | None


@final
class RowCharges:
    """The cost of one release to each row, as the owner derives it: a server's figures are not looked at.

    Args:
        question: of a filtered event's draw.
        release: the event of its release, as the owner derives it.

    Raises:
        RoundViolation: a query that is not a sum of what single rows contribute, so that they could take part without
            a charge; other noise than Gaussian noise on two columns; or another release than the event's.
    """

    __slots__ = ("_costs", "_weights", "event")

    def __init__(self, question: OwnersQuestion, release: Event) -> None:
        event, query = question.draw.event, question.query
        if not isinstance(event, FilteredEvent):
            raise RoundViolation(f"{event!r} has no limit on single rows")
        if question.is_choice or not TREES.evaluation(query).filtered(query):
            raise RoundViolation(
                f"{name_of(query)} is not a sum over rows that each row pays for: its cost to a row cannot be computed "
                "from that row alone, so that no filter can carry it out"
            )
        if release != event.release:
            raise RoundViolation(f"a release is {release!r}; this draw filters {event.release!r}")
        self.event = event
        self._weights = charge_weights(question.mechanism, query.grid, release)
        self._costs = row_costs(event)

    def of(self, left: NDArray[np.int64]) -> RowBudgets:
        """The budgets of the rows, for the evaluator of the query, which changes `left`."""
        return RowBudgets(left, self._costs, self._weights)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RowAccounts:
    """The accounts of one session's rows after a charge.

    Args:
        session, draw, round, attempt: see `ChargedUpload`; of the latest upload that rows were charged for.
        event: the filtered event.
        left: int64 (n,), in units of `accounting.individuals`: of each row by its place, or of each unit of a stream.
        units: of a stream, digests of the units' keys, sorted, (n,); empty otherwise.
        salt: of a stream, key of the digests, 32 bytes; empty otherwise.
        kind: of a stream, what the keys are, by the type of their column; None before one has said it.
    """

    session: str
    draw: int
    event: Event
    round: int
    attempt: int
    left: NDArray[np.int64]
    units: NDArray[np.bytes_] = field(default_factory=lambda: np.empty(0, dtype=DIGEST))
    salt: bytes = b""
    kind: KeyKind | None = None

    def encoded(self) -> bytes:
        """The bytes of a file."""
        header = {
            "format": _FORMAT,
            "session": self.session,
            "draw": self.draw,
            "event": to_json(self.event),
            "round": self.round,
            "attempt": self.attempt,
            "rows": len(self.left),
            "salt": self.salt.hex(),
            "keys": self.kind,
        }
        left = self.left.astype(_LEFT, copy=False).tobytes()
        body = canonical(header).encode() + b"\n" + self.units.tobytes() + left
        return body + hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest()

    @classmethod
    def decoded(cls, data: bytes, path: Path) -> Self:
        """The accounts that a file has.

        Args:
            data: its bytes.
            path: for errors.

        Raises:
            LedgerCorrupted: no such file, cut, or altered.
        """
        body, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
        try:
            if hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest() != checksum:
                raise ValueError("its checksum does not match")
            line, _, rest = body.partition(b"\n")
            header = json.loads(line)
            if set(header) != _FIELDS or header["format"] != _FORMAT:
                raise ValueError("another format")
            n, salt = header["rows"], bytes.fromhex(header["salt"])
            if header["keys"] not in (None, *get_args(KeyKind)) or len(salt) not in (0, SALT_BYTES):
                raise ValueError("its keys")
            start = n * DIGEST_BYTES if salt else 0
            units = cast("NDArray[np.bytes_]", np.frombuffer(rest[:start], DIGEST))
            left = np.frombuffer(rest[start:], _LEFT).astype(np.int64)
            if not (units[:-1] < units[1:]).all():
                raise ValueError("its units")
            if len(left) != n or ((left < 0) | (left > FULL)).any():
                raise ValueError("its rows")
            if not all(type(header[name]) is int for name in ("draw", "round", "attempt")):
                raise ValueError("its numbers")
            return cls(
                session=header["session"], draw=header["draw"], event=from_json(header["event"]),
                round=header["round"], attempt=header["attempt"], left=left,
                units=units, salt=salt, kind=header["keys"],
            )  # fmt: skip
        except (PrivacyError, ValueError, KeyError, TypeError) as error:
            problem = str(error)
        raise LedgerCorrupted(
            f"the accounts of rows {path} were cut or altered ({problem}): what the rows have left is not known, and "
            "nothing more is answered in this session"
        )


@final
class RowAccountsFile:
    """The accounts of the rows of one session, in a file; used by one process at a time, see `ClientAccount.answer`.

    Args:
        ledger: the path of the owner's ledger; the file is in a folder beside it.
        session: its name.
        n_rows: the number of rows.
        keys: of a stream, the units of the rows; None: each row has an account by its place.
    """

    __slots__ = ("_digests", "_keys", "_n_rows", "path")

    def __init__(self, ledger: Path, session: str, n_rows: int, keys: UnitKeys | None = None) -> None:
        self.path = ledger.with_name(ledger.name + ".rows") / session
        self._n_rows, self._keys = n_rows, keys
        self._digests: tuple[bytes, NDArray[np.bytes_]] | None = None

    def charged(
        self, upload: ChargedUpload, event: FilteredEvent, sums: Callable[[NDArray[np.int64]], Integers]
    ) -> Integers:
        """The sums of an upload, once what each row has left afterwards is on the disk.

        Args:
            upload: that rows pay for.
            event: of its draw.
            sums: makes them of what each row has left, int64 (n_rows,), which it charges.

        Raises:
            LedgerError: the file is lost, or an older copy, in which rows have too much left, or of other keys.
            LedgerCorrupted: it was cut or altered.
            LedgerWriteFailed: the disk is full, say; nothing may be sent.
        """
        before = self._before(upload, event)
        places = None if self._keys is None else self._places(before)
        if places is None:
            left = before.left.copy()
            found = sums(left)
            after = replace(before, left=left)
        else:
            assert self._keys is not None  # above
            units, of_units, at = places
            left = np.zeros(self._n_rows, dtype=np.int64)  # a row that is no unit's has nothing, and takes no part
            left[self._keys.rows] = of_units[at]
            found = sums(left)
            of_units[at] = left[self._keys.rows]
            after = replace(before, left=of_units, units=units, kind=before.kind or self._keys.kind)
        self._keep(replace(after, round=upload.round, attempt=upload.attempt))
        return found

    def _before(self, upload: ChargedUpload, event: FilteredEvent) -> RowAccounts:
        """The accounts as they are; whole limits where nothing was answered in the draw."""
        found = self._read()
        # A draw that is over has accounts of its own, whose place those of the next one take.
        if found is None or (upload.last is None and found.session == upload.session and found.draw < upload.draw):
            if upload.last is not None:
                raise LedgerError(
                    f"this owner has answered in draw {upload.draw} of session {upload.session}, and the accounts of "
                    f"its rows, {self.path}, are lost: what the rows have left is not known. Nothing more is answered "
                    "in this session"
                )
            keyed = self._keys is not None
            return RowAccounts(
                session=upload.session, draw=upload.draw, event=event, round=0, attempt=0,
                left=np.full(0 if keyed else self._n_rows, FULL, dtype=np.int64),
                salt=os.urandom(SALT_BYTES) if keyed else b"",
            )  # fmt: skip
        rows = self._n_rows if self._keys is None else len(found.left)
        of = (found.session, found.draw, found.event, len(found.left), bool(found.salt))
        if of != (upload.session, upload.draw, event, rows, self._keys is not None):
            raise LedgerError(
                f"the accounts of rows {self.path} are of draw {found.draw} of session {found.session}, with "
                f"{len(found.left)} accounts, and not of draw {upload.draw} of session {upload.session}, or its "
                "answers are older than the accounts. Restore the newest files; nothing more is answered in this "
                "session"
            )
        if upload.last is not None and (found.round, found.attempt) < upload.last:
            raise LedgerError(
                f"the accounts of rows {self.path} end with round {found.round}, attempt {found.attempt}, and this "
                f"owner has answered round {upload.last[0]}, attempt {upload.last[1]}: the file is an older copy, in "
                "which rows have too much left. Restore the newest one"
            )
        return found

    def _places(self, before: RowAccounts) -> tuple[NDArray[np.bytes_], NDArray[np.int64], NDArray[np.intp]]:
        """All units, what each has left, new arrays; and where the units of these rows are."""
        keys = self._keys
        assert keys is not None  # a stream's
        if None not in (before.kind, keys.kind) and before.kind != keys.kind:
            raise LedgerError(
                f"this stream's keys are {before.kind}, and these are {keys.kind}, by the type of their column: give "
                "the same keys as before; a unit with a new key would have a second budget"
            )
        if self._digests is None or self._digests[0] != before.salt:
            self._digests = before.salt, key_digests(keys, before.salt)
        return found_units(before.units, before.left, self._digests[1])

    def _read(self) -> RowAccounts | None:
        file = VaultFile.hold(self.path) if self.path.parent.exists() else None
        if file is None:
            return None
        try:
            return RowAccounts.decoded(file.read(), self.path)
        finally:
            file.close()

    def _keep(self, accounts: RowAccounts) -> None:
        data = accounts.encoded()
        try:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise LedgerWriteFailed(
                error.errno or 0, f"the folder {self.path.parent} was not made: {error.strerror}"
            ) from error
        file = VaultFile.hold(self.path)
        if file is None:
            VaultFile.create(self.path, data).close()
            return
        try:
            file.replace(data)
        finally:
            file.close()


@final
class PaidSums:
    """The sums of one upload under an individual filter: rows that can pay are charged, on the disk, and read.

    Args:
        charges: of the release.
        file: of the rows' accounts.
        asked: makes the sums, of budgets that it changes.
    """

    __slots__ = ("_asked", "_charges", "_file", "sums")

    def __init__(self, *, charges: RowCharges, file: RowAccountsFile, asked: Callable[..., Integers]) -> None:
        self._charges, self._file, self._asked = charges, file, asked

    def __call__(self, upload: ChargedUpload) -> None:
        """Charge the rows; see `ClientAccount.answer`."""
        self.sums = self._file.charged(
            upload, self._charges.event, lambda left: self._asked(budgets=self._charges.of(left))
        )
