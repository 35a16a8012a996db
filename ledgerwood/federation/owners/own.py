"""What an owner of rows has: the rows, and the secret by which it is known in all sessions."""

import dataclasses
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from ledgerwood.curator.inputs.typed_columns import TypedColumns, require_labels
from ledgerwood.curator.places.federated_rows import FitTerms
from ledgerwood.errors import FederationRefused, PrivacyError, SchemaError
from ledgerwood.secure_aggregation import SessionKeys

_IDENTITY_BYTES = 32


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OwnRows:
    """The rows of one owner: X of shape (n_rows, n_features), y and, perhaps, weights of shape (n_rows,).

    Of a stream they are the rows of the present call, with `keys` of shape (n_rows,): each row's privacy unit.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    keys: Any = None

    def typed(self, *, numeric_target: bool) -> TypedColumns:
        """The names and types of the columns, for a fit that estimates their schema.

        Args:
            numeric_target: whether labels are numbers.

        Raises:
            SchemaError: weights, or columns or labels of a type that cannot be estimated.
        """
        if self.sample_weight is not None:
            raise SchemaError(
                "sample_weight needs a declared schema with a weight_bound: an estimated schema does not have one"
            )
        require_labels(self.y, None, numeric=numeric_target)
        return dataclasses.replace(TypedColumns.of(self.X, self.y, numeric_target=numeric_target), at_owners=True)


def require_units(own: OwnRows, fit: FitTerms) -> None:
    """Refuse a stream of rows without keys, and a fit of rows with keys, which pays for single rows.

    Raises:
        FederationRefused: so it is.
    """
    if fit.stream and own.keys is None:
        raise FederationRefused("a stream needs keys, each row's privacy unit, and this owner's rows have none")
    if fit.stream and (own.sample_weight is not None or fit.schema is None):
        raise FederationRefused("the rows of a stream have no weights, and a declared schema")
    if not fit.stream and own.keys is not None:
        raise FederationRefused("this owner's rows have keys: it takes part in streams, not in a fit of single rows")


def identity_at(path: str | Path) -> bytes:
    """The secret of an owner, 32 bytes, in a file that nobody else may read; made where there is none.

    Raises:
        PrivacyError: a file of another length, or one that others may read.
    """
    place = Path(path)
    with suppress(FileExistsError):
        made = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(made, "wb") as file:
            file.write(os.urandom(_IDENTITY_BYTES))
            file.flush()
            os.fsync(file.fileno())
    identity = place.read_bytes()
    if len(identity) != _IDENTITY_BYTES:
        raise PrivacyError(f"{place} has {len(identity)} bytes, and a key of an owner has {_IDENTITY_BYTES}")
    if place.stat().st_mode & 0o077:
        raise PrivacyError(f"others may read {place}, the secret of this owner: chmod 600")
    return identity


def verifying_key(identity: bytes) -> bytes:
    """The public key of an owner, 32 bytes, by which a registry knows it in all sessions."""
    return SessionKeys.derived(identity, b"registry").verifying_key
