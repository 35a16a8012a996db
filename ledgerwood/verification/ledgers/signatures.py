"""Signatures of a ledger's head, and the lines of a ledger database, read by no code of the store that wrote it.

An Ed25519 signature tells a chain that was rebuilt whole from the one that its owner signed
(docs/explanation/ledger.md#signatures). Keys are PEM files, as `openssl genpkey -algorithm ed25519` writes them.
"""

import json
from pathlib import Path
from typing import Any

from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError
from ledgerwood.verification.ledgers.checkpoints import opening_of, start_of, until_checkpoint

_KEYS = {"dataset", "entries", "format", "head", "signature"}
_FORMAT = "ledgerwood ledger head, Ed25519, 1"


def signature_of(lines: list[str], private_key: str | Path) -> str:
    """Sign the head of a verified chain; one line of canonical JSON, without the key.

    Args:
        lines: all lines of the ledger.
        private_key: PEM file of an Ed25519 private key, not encrypted.

    Raises:
        InvalidParameter: no such key.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(Path(private_key).read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidParameter(f"private_key={str(private_key)!r} cannot be read: {error} (unit: PEM file)") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidParameter(f"private_key={str(private_key)!r} must be an Ed25519 private key (unit: PEM file)")
    statement = _statement(lines)
    return _canonical({**statement, "signature": key.sign(_canonical(statement).encode()).hex()})


def check_signature(lines: list[str], signature: str, public_key: str | Path) -> int:
    """Counts the entries, from the first, that the signature covers; later entries are newer.

    Args:
        lines: all lines of a ledger whose chain holds.
        signature: the result of `signature_of`.
        public_key: PEM file of the Ed25519 public key that the reader trusts.

    Raises:
        LedgerCorrupted: the signature is not of this key, or not of this chain.
        LedgerError: it is of entries before the checkpoint with which the ledger begins.
        InvalidParameter: no such key.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(Path(public_key).read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidParameter(f"public_key={str(public_key)!r} cannot be read: {error} (unit: PEM file)") from error
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidParameter(f"public_key={str(public_key)!r} must be an Ed25519 public key (unit: PEM file)")
    try:
        found: dict[str, Any] = json.loads(signature)
        if set(found) != _KEYS or found["format"] != _FORMAT:
            raise ValueError(f"not of the form {_FORMAT!r}")
        statement = {name: value for name, value in found.items() if name != "signature"}
        key.verify(bytes.fromhex(found["signature"]), _canonical(statement).encode())
        count = int(found["entries"])
    except InvalidSignature as error:
        raise LedgerCorrupted("the signature was not made by the owner of this key, or was altered") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise LedgerCorrupted(f"the signature cannot be read: {error}") from error
    start = start_of(lines)
    if count > start + len(lines):
        raise LedgerCorrupted(f"entry {start + len(lines)}: missing; the signature is of a ledger of {count} entries")
    if count <= start:
        raise LedgerError(
            f"the signature is of {count} entries, before the checkpoint at entry {start} with which this ledger "
            "begins, so it says nothing of what is there; sign the checkpoint, or verify the whole ledger"
        )
    if _statement(lines[: count - start]) != statement:
        raise LedgerCorrupted(f"entry {count - 1}: not the one that was signed: the chain was rebuilt, or is another")
    return count


def read_signature(path: str | Path) -> str:
    """The signature in a file.

    Raises:
        LedgerError: no such file.
    """
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(f"the signature {path} cannot be read: {error}") from error


def _statement(lines: list[str]) -> dict[str, object]:
    """What is signed."""
    first, last, entries = opening_of(lines[0]), json.loads(lines[-1]), start_of(lines) + len(lines)
    return {"dataset": first["dataset"], "entries": entries, "format": _FORMAT, "head": last["hash"]}


def _canonical(record: object) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def database_lines(url: str, dataset: str | None, *, from_checkpoint: bool = False) -> tuple[list[str], str]:
    """The lines of a data set's ledger in their order, and the head that the database keeps for it.

    With `from_checkpoint`, the lines from the last checkpoint on; none where there is no checkpoint.

    Raises:
        LedgerError: no such database or data set, or it cannot be read.
        InvalidParameter: no data set is named.
        ImportError: the extra `sql` is missing.
    """
    if dataset is None:
        raise InvalidParameter("dataset=None must be the label of a data set: a database holds many (unit: text)")
    try:
        return _read(url, dataset, from_checkpoint)
    except ModuleNotFoundError as missing:
        raise ImportError(
            f"a ledger in a database needs {missing.name}: pip install 'ledgerwood[sql]'", name=missing.name
        ) from missing


def _read(url: str, dataset: str, from_checkpoint: bool) -> tuple[list[str], str]:
    import sqlalchemy as sa

    try:
        address = sa.make_url(url)
        name = f"{address.set(query={}).render_as_string()}, data set {dataset!r}"  # an option may hold a password
        if address.drivername == "postgresql":
            address = address.set(drivername="postgresql+psycopg")
        if address.drivername.startswith("sqlite") and not Path(str(address.database)).is_file():
            raise LedgerError(f"there is no ledger database {name}")
        engine = sa.create_engine(address, hide_parameters=True)
        try:
            with engine.connect() as connection:  # one statement: one state of the database
                found = connection.execute(
                    sa.text(
                        "SELECT e.line, h.head FROM ledgerwood_entries e "
                        "JOIN ledgerwood_heads h ON h.dataset = e.dataset "
                        f"WHERE e.dataset = :dataset ORDER BY e.position{' DESC' if from_checkpoint else ''}"
                    ),
                    {"dataset": dataset},
                )
                rows = until_checkpoint(found) if from_checkpoint else found.all()
        finally:
            engine.dispose()
    except sa.exc.SQLAlchemyError as error:
        raise LedgerError(f"the ledger database cannot be read: {getattr(error, 'orig', None) or error}") from error
    if not rows:
        if from_checkpoint:
            return [], ""
        raise LedgerError(f"there is no ledger at {name}")
    return [row.line for row in rows], str(rows[0].head)
