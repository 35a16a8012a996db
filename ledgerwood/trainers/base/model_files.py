"""A fitted model as a folder: model.json, arrays.npz and ledger.jsonl. Never a pickle.

Everything in it is public: parameters, schema, released values, ledger. model.json is written last and names the digest
of the arrays and the ledger's head, so that a folder of mixed or torn files is refused.
"""

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ledgerwood.accounting.ledger import LedgerRecord
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, PrivacyError

FORMAT_VERSION = 1
_MODEL, _ARRAYS, _LEDGER = "model.json", "arrays.npz", "ledger.jsonl"


def write_model(folder: Path, record: dict[str, Any], ensemble: Ensemble, ledger: LedgerRecord) -> None:
    """Write the three files, each whole or not at all, the one that vouches for the others last.

    Args:
        folder: made where it does not exist; a model that is in it is replaced, where its ledger is the start of this.
        record: plain values, of which "privacy" holds the ledger's head.
        ensemble: the released trees.
        ledger: as it stood after the fit.

    Raises:
        LedgerError: the folder holds another ledger, whose entries would be lost. Nothing was written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **ensemble.to_arrays())
    arrays = buffer.getvalue()
    complete = {"format": FORMAT_VERSION, **record, "arrays_sha256": hashlib.sha256(arrays).hexdigest()}
    text = json.dumps(complete, indent=1, allow_nan=False) + "\n"
    ledger.save(folder / _LEDGER)  # the one that may be refused comes first
    _replace(folder / _ARRAYS, arrays)
    _replace(folder / _MODEL, text.encode("utf-8"))


def read_model(folder: Path, estimator: str) -> tuple[dict[str, Any], Ensemble, LedgerRecord]:
    """The record, trees and ledger of a folder that `write_model` wrote.

    Raises:
        InvalidParameter: not such a folder, another estimator's, of another format version, or with other arrays.
        LedgerCorrupted: the ledger is not the one that the privacy statement closed with.
    """
    try:
        record = json.loads((folder / _MODEL).read_text(encoding="utf-8"))
        found = (record["estimator"], record["format"])
        if found != (estimator, FORMAT_VERSION):
            raise InvalidParameter(
                f"{folder} holds a {found[0]} of format {found[1]!r}; expected {estimator} of {FORMAT_VERSION}"
            )
        data = (folder / _ARRAYS).read_bytes()
        if hashlib.sha256(data).hexdigest() != record["arrays_sha256"]:
            raise InvalidParameter(
                f"{folder}: {_ARRAYS} is not the file that {_MODEL} was written with (unit: SHA-256)"
            )
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            ensemble = Ensemble.from_arrays(dict(arrays))
        ledger = LedgerRecord.from_lines(tuple((folder / _LEDGER).read_text(encoding="utf-8").splitlines()))
        if ledger.head != record["privacy"]["ledger_head"]:
            raise LedgerCorrupted(
                f"{folder}: the ledger ends in {ledger.head}, but the model's statement names "
                f"{record['privacy']['ledger_head']} (unit: hash): entries were cut off, or it is another model's"
            )
    except PrivacyError:
        raise
    except (OSError, KeyError, TypeError, ValueError, BadZipFile) as error:
        raise InvalidParameter(f"{folder} is not a saved {estimator}: {error!r}") from error
    return record, ensemble, ledger


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
