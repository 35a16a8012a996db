"""The owner's private store of what each privacy unit of a stream has left of its individual filter's budget.

Never part of a model, a ledger or a release. A vault serves one stream: the rounds of one `FilteredEvent` that one draw
of a ledger paid for.
"""

import dataclasses
import hashlib
import os
import threading
import weakref
from pathlib import Path
from typing import NoReturn, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.serial import to_json
from ledgerwood.accounting.individuals import FULL
from ledgerwood.accounting.ledger import Receipt
from ledgerwood.accounting.ledger.entries import canonical
from ledgerwood.curator.inputs.values import UnitKeys
from ledgerwood.curator.tables.vault_files import DIGEST, DIGEST_BYTES, SALT_BYTES, Contents, VaultFile, decode, encode
from ledgerwood.errors import InvalidParameter, LedgerError


@final
class RowVault:
    """The remaining budget of each unit, found by its key; in memory, or in a file by `RowVault.open`.

    Units that take part are claimed first: from then on, and on the disk before any row is read, they count as spent
    altogether; settling gives back what they did not use. A crash between the two loses their budgets, never privacy.

    A vault cannot be copied or pickled, nor used in a forked process: each copy would have the same budgets.
    docs/explanation/vaults.md#row-vault.
    """

    __slots__ = ("__weakref__", "_claimed", "_contents", "_file", "_lock", "_owner")
    _claimed: tuple[NDArray[np.intp], NDArray[np.int64]] | None  # where the claimed units are, and what each has

    def __init__(self) -> None:
        self._hold(_empty(), None)

    @classmethod
    def open(cls, path: str | Path) -> "RowVault":
        """Create or reopen a vault in a file, which only its owner may read and which has one holder at a time.

        Args:
            path: the path of the file, in a folder that exists and can be written to. Keep no copies: one that is put
                back has more left than is true, and the file alone cannot show it.

        Raises:
            LedgerError: it is in use elsewhere, or cannot be opened.
            LedgerCorrupted: it is no vault, another release's, cut or altered; it is left as it is.
            LedgerWriteFailed: a new one could not be made.
        """
        # A link is followed once: replacing it would leave the file that it leads to behind.
        place = Path(path).resolve()
        file = VaultFile.hold(place)
        if file is None:
            contents = _empty()
            file = VaultFile.create(place, encode(contents))
        else:
            try:
                contents = decode(file.read(), place)
            except BaseException:
                file.close()
                raise
        vault = cls.__new__(cls)
        vault._hold(contents, file)
        weakref.finalize(vault, file.close)
        return vault

    @property
    def draw(self) -> str | None:
        """Hash of the ledger entry that paid for this stream, hexadecimal; None before the first use."""
        return self._contents.draw

    @property
    def claims(self) -> int:
        """The total number of claims; it distinguishes an older copy of the file."""
        return self._contents.claims

    def prepare(self) -> None:
        """Refuse a vault that could not take on a new stream, before anything is paid for one.

        Raises:
            LedgerError: it has a stream already: one vault, one stream; or it was closed, moved, or forked.
            LedgerWriteFailed: it cannot be written.
        """
        with self._lock:
            self._require_owner()
            self._require_new()
            self._commit(self._contents)

    def require(self, receipt: Receipt, *, claims: int) -> None:
        """Refuse a vault that is not this stream's, or knows less of it than the caller.

        Args:
            receipt: that the stream was begun with.
            claims: how often units had been claimed when the caller last looked.

        Raises:
            LedgerError: a new vault, another stream's, an older copy, or one that was closed, moved, or forked.
        """
        self._require_owner()
        if self._file is not None:
            self._file.require_held()
        old = self._contents
        if old.draw is None:
            raise LedgerError("this row vault is new: it has no record of the spending in this stream")
        if (old.draw, old.event) != (receipt.hash, canonical(to_json(receipt.event))):
            raise LedgerError(
                f"this row vault belongs to the stream of draw {old.draw[:16]}..., not of "
                f"{receipt.hash[:16]}...: its budgets belong to that draw"
            )
        if old.claims < claims:
            raise LedgerError(
                f"this row vault has recorded {old.claims} claims, and the stream has made {claims}: it is an "
                "older copy, in which rows have too much budget left"
            )

    def begin(self, receipt: Receipt) -> None:
        """Take on the stream that this receipt paid for.

        Raises:
            LedgerError: the vault has a stream already.
            LedgerWriteFailed: it was not taken on.
        """
        with self._lock:
            self._require_owner()
            self._require_new()
            self._commit(
                dataclasses.replace(self._contents, draw=receipt.hash, event=canonical(to_json(receipt.event)))
            )

    def claim(self, keys: UnitKeys, receipt: Receipt) -> NDArray[np.int64]:
        """Reserve the units that are about to be read; until they are settled, their remaining budget is 0.

        Args:
            keys: the units of the rows. One that is not known yet has its full budget.
            receipt: that the stream was begun with.

        Returns:
            What each may still lose, in 2**-52 of its budget: int64 (n_units,).

        Raises:
            LedgerError: another stream's vault, a new one, another kind of keys, or units that are claimed already.
            LedgerWriteFailed: nothing was claimed.
        """
        with self._lock:
            self._require_owner()
            old = self._contents
            self.require(receipt, claims=0)
            if self._claimed is not None:
                raise LedgerError(
                    "units of this row vault are claimed and not settled; one claim at a time. If that failed, close "
                    "the vault and open it again: they count as spent"
                )
            if None not in (old.kind, keys.kind) and old.kind != keys.kind:
                raise LedgerError(
                    f"this stream's keys are {old.kind}, and these are {keys.kind}, by the type of their column: "
                    "give the same keys as before; a unit with a new key would have a second budget"
                )
            units, left, places = found_units(old.units, old.left, key_digests(keys, old.salt))
            granted = left[places]
            left[places] = 0
            kind = old.kind or keys.kind
            self._commit(dataclasses.replace(old, kind=kind, claims=old.claims + 1, units=units, left=left))
            self._claimed = (places, granted)
            return granted.copy()

    def settle(self, left: NDArray[np.int64]) -> None:
        """Give back what the claimed units did not use.

        Args:
            left: int64 (n_units,), in the order of the claim, of each at most what it was claimed with.

        Raises:
            InvalidParameter: something else; the claim stays open.
            LedgerError: there is no claim.
            LedgerWriteFailed: nothing was given back; it may be tried again.
        """
        with self._lock:
            self._require_owner()
            if self._claimed is None:
                raise LedgerError("nothing is claimed from this row vault")
            places, granted = self._claimed
            if left.dtype != np.int64 or left.shape != granted.shape or ((left < 0) | (left > granted)).any():
                raise InvalidParameter(
                    "left must be int64, one a claimed unit, between 0 and the claimed amount (unit: 2**-52 of a "
                    "unit's budget)"
                )
            self._claimed = (places, left.copy())  # a second try gives back no more than this one
            settled = self._contents.left.copy()
            settled[places] = left
            self._commit(dataclasses.replace(self._contents, left=settled))
            self._claimed = None

    def close(self) -> None:
        """Release the file; what is claimed stays spent."""
        with self._lock:
            if self._file is not None:
                self._file.close()

    def __enter__(self) -> "RowVault":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> NoReturn:
        raise _no_copy()

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise _no_copy()

    def __reduce__(self) -> NoReturn:
        raise _no_copy()

    def __repr__(self) -> str:
        return f"RowVault(path={None if self._file is None else str(self._file.path)!r})"

    def _hold(self, contents: Contents, file: VaultFile | None) -> None:
        self._contents, self._file = contents, file
        self._claimed = None
        self._lock, self._owner = threading.RLock(), os.getpid()

    def _commit(self, contents: Contents) -> None:
        if self._file is not None:
            self._file.replace(encode(contents))
        self._contents = contents

    def _require_new(self) -> None:
        if self._contents.draw is not None:
            raise LedgerError(
                f"this row vault belongs to the stream of draw {self._contents.draw[:16]}...; a new stream needs a new "
                "vault"
            )

    def _require_owner(self) -> None:
        if self._owner != os.getpid():
            raise LedgerError(
                "this row vault belongs to another process: a forked process would have the same budgets twice"
            )


def _empty() -> Contents:
    return Contents(salt=os.urandom(SALT_BYTES), units=np.empty(0, DIGEST), left=np.empty(0, np.int64))


def key_digests(keys: UnitKeys, salt: bytes) -> NDArray[np.bytes_]:
    """Keyed digests of the keys, shape (n_rows,)."""
    start = hashlib.blake2b(key=salt, digest_size=DIGEST_BYTES, person=b"ledgerwood vault")

    def digest(token: bytes) -> bytes:
        state = start.copy()
        state.update(token)
        return state.digest()

    return np.frombuffer(b"".join(map(digest, keys.tokens)), dtype=DIGEST)


def found_units(
    old: NDArray[np.bytes_], old_left: NDArray[np.int64], asked: NDArray[np.bytes_]
) -> tuple[NDArray[np.bytes_], NDArray[np.int64], NDArray[np.intp]]:
    """Units and what they have left, new arrays, the new ones joined with a full budget; and where each asked one is.

    Args:
        old: digests of the known units, sorted, shape (n,).
        old_left: what each of them has left, shape (n,).
        asked: digests of the units of a call.

    Raises:
        LedgerError: two keys of one call with one digest; each would be given the same budget.
    """
    order = np.argsort(asked)
    ranked = asked[order]
    if (ranked[:-1] == ranked[1:]).any():
        raise LedgerError(
            "two keys of one call have the same digest: a chance of 2**-128 a pair, or the same key twice"
        )
    known = np.searchsorted(old, ranked)
    new = np.ones(len(ranked), dtype=np.bool_)
    if len(old):
        new = old[np.minimum(known, len(old) - 1)] != ranked
    units = np.insert(old, known[new], ranked[new])
    left = np.insert(old_left, known[new], FULL)
    places = np.empty(len(asked), dtype=np.intp)
    places[order] = np.searchsorted(units, ranked)
    return units, left, places


def _no_copy() -> LedgerError:
    return LedgerError("a row vault cannot be copied or pickled: each copy would have the same budgets")
