"""Signatures and databases of ledgers, read independently.

Ed25519 signatures of a ledger's head: what tells a chain rebuilt whole from the one that its owner signed.

docs/explanation/ledger.md#signatures. Keys are PEM files, as `openssl genpkey -algorithm ed25519` writes them.

Read a ledger database independently: one query, no code of the store that wrote it.
"""

import json
from pathlib import Path
from typing import Any

from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError

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
    if count > len(lines):
        raise LedgerCorrupted(f"entry {len(lines)}: missing; the signature is of a ledger of {count} entries")
    if _statement(lines[:count]) != statement:
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
    first, last = (json.loads(line) for line in (lines[0], lines[-1]))
    return {"dataset": first["dataset"], "entries": len(lines), "format": _FORMAT, "head": last["hash"]}


def _canonical(record: object) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def database_lines(url: str, dataset: str | None) -> tuple[list[str], str]:
    """The lines of a data set's ledger in their order, and the head that the database keeps for it.

    Raises:
        LedgerError: no such database or data set, or it cannot be read.
        InvalidParameter: no data set is named.
        ImportError: the extra `sql` is missing.
    """
    if dataset is None:
        raise InvalidParameter("dataset=None must be the label of a data set: a database holds many (unit: text)")
    try:
        return _read(url, dataset)
    except ModuleNotFoundError as missing:
        raise ImportError(
            f"a ledger in a database needs {missing.name}: pip install 'ledgerwood[sql]'", name=missing.name
        ) from missing


def _read(url: str, dataset: str) -> tuple[list[str], str]:
    import sqlalchemy as sa

    try:
        address = sa.make_url(url)
        name = f"{address.render_as_string()}, data set {dataset!r}"
        if address.drivername == "postgresql":
            address = address.set(drivername="postgresql+psycopg")
        if address.drivername.startswith("sqlite") and not Path(str(address.database)).is_file():
            raise LedgerError(f"there is no ledger database {name}")
        engine = sa.create_engine(address, hide_parameters=True)
        try:
            with engine.connect() as connection:  # one statement: one state of the database
                rows = connection.execute(
                    sa.text(
                        "SELECT e.line, h.head FROM ledgerwood_entries e "
                        "JOIN ledgerwood_heads h ON h.dataset = e.dataset "
                        "WHERE e.dataset = :dataset ORDER BY e.position"
                    ),
                    {"dataset": dataset},
                ).all()
        finally:
            engine.dispose()
    except sa.exc.SQLAlchemyError as error:
        raise LedgerError(f"the ledger database cannot be read: {getattr(error, 'orig', None) or error}") from error
    if not rows:
        raise LedgerError(f"there is no ledger at {name}")
    return [row.line for row in rows], str(rows[0].head)
