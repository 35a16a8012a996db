"""A fitted model as a folder: model.json, arrays.npz and ledger.jsonl. Never a pickle. And an estimator in one line.

Everything in it is public: parameters, schema, released values, ledger. model.json is written last and names the digest
of the arrays and the ledger's head, so that a folder of mixed or torn files is refused.
"""

import dataclasses
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.ledger import LedgerRecord
from ledgerwood.curator import Schema
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, PrivacyError
from ledgerwood.pages.shown import shortened
from ledgerwood.references import Cited
from ledgerwood.trainers.base.citations import estimator_citations
from ledgerwood.trainers.base.privacy import PrivacyStatement
from ledgerwood.trainers.estimated.described import draft_in
from ledgerwood.trainers.estimated.purchase import SchemaPurchase

FORMAT_VERSION = 1
_ALWAYS = ("epsilon", "delta")
"""Parameters that an estimator's text states, whatever they are."""
_MODEL, _ARRAYS, _LEDGER = "model.json", "arrays.npz", "ledger.jsonl"


class ReleasedModel(Protocol):
    """What a trainer releases: a value, best a frozen dataclass, of numbers that are public."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All that it consists of, as arrays of numbers by name."""

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """The inverse of `to_arrays`; raises KeyError, TypeError or ValueError where the arrays are no such model."""


class AbstractSavedModel(BaseEstimator, Cited):  # type: ignore[misc]
    """What a fitted estimator is made of when it is on disk: public values only."""

    _plan_type: ClassVar[type[Any]]
    _model_type: ClassVar[type[Any]]
    _keeps: ClassVar[str] = "model_"
    """The attribute that holds the released model."""

    # What a fit or `load` sets, for type checkers; this class is no dataclass, so that these are no parameters.
    schema_: Schema
    plan_: Any
    privacy_: PrivacyStatement
    ledger_: LedgerRecord
    n_features_in_: int
    model_: Any
    federation_: Any

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return estimator_text(self, N_CHAR_MAX)

    def cited(self) -> tuple[object, ...]:
        """What it rests on, for `ledgerwood.cite`: its plan's papers; before a fit those of the plan to be made."""
        return estimator_citations(self, self._plan_type)

    def save(self, path: str | Path) -> None:
        """Write the fitted model as a folder: model.json, arrays.npz and ledger.jsonl. Never a pickle.

        Everything in it is public: parameters, schema, released values, ledger. A test's seed is left out.

        Raises:
            LedgerError: the folder holds another ledger, whose entries would be lost. Nothing was written.
        """
        check_is_fitted(self, self._keeps)
        plan = self.plan_
        record = {
            "estimator": type(self).__name__,
            "parameters": self._parameter_record(),
            "n_features_in": self.n_features_in_,
            "feature_names_in": list(self.feature_names_in_) if "feature_names_in_" in vars(self) else None,
            "schema": json.loads(self.schema_.to_json()),
            "plan": {field.name: _plain(getattr(plan, field.name)) for field in dataclasses.fields(plan)},
            "privacy": self.privacy_.to_record(),
            **self._more_record(),
        }
        write_model(Path(path), record, getattr(self, self._keeps), self.ledger_)

    def _parameter_record(self) -> dict[str, object]:
        parameters = {name: _plain(value) for name, value in self.get_params(deep=False).items() if name != "schema"}
        parameters["random_state"] = None
        return parameters

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that `save` wrote; it predicts as before, bit for bit.

        Raises:
            InvalidParameter: not such a folder, another estimator's, or of another format version.
            LedgerCorrupted: the ledger is not the one that the privacy statement closed with, or does not back it.
        """
        record, arrays, ledger = read_model(Path(path), cls.__name__)
        try:
            model = cls(**record["parameters"])
            model.schema_ = Schema.from_json(json.dumps(record["schema"]))
            model.n_features_in_ = _validate.count("n_features_in", record["n_features_in"], "columns")
            model.plan_ = cls._read_plan(record["plan"])
            # What was bought for one fit is no declaration: another fit buys its own.
            bought = model.plan_.purchase
            model.schema = model.schema_ if bought is None else draft_in(bought.columns)
            model.privacy_ = PrivacyStatement.from_record(record["privacy"])
            names = record["feature_names_in"]
            released = cls._model_type.from_arrays(arrays)
            model._require_loaded(released)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidParameter(f"{path} is not a saved {cls.__name__}: {error!r}") from error
        model.privacy_.require_backing(model.plan_.event, ledger)
        setattr(model, cls._keeps, released)
        model.ledger_ = ledger
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        model._read_more(record, Path(path))
        model._restore()
        return model

    @classmethod
    def _read_plan(cls, record: dict[str, Any]) -> Any:
        """The plan from the record that `save` made of its fields."""
        bought = record.get("purchase")
        purchase = None if bought is None else SchemaPurchase.from_record(bought)
        return cls._plan_type(**{**record, "adjacency": Adjacency(record["adjacency"]), "purchase": purchase})

    def _more_record(self) -> dict[str, object]:
        """What a kind of estimator saves besides: plain, public values."""
        return {}

    def _read_more(self, record: dict[str, Any], path: Path) -> None:
        """Read what `_more_record` saved, once all else is read.

        Raises:
            InvalidParameter, LedgerCorrupted: as `load`.
        """

    def _require_loaded(self, model: Any) -> None:
        """Refuse a model that does not go with the schema and the number of columns, which are read before it.

        Raises:
            InvalidParameter, ValueError: so it is; `load` names the file.
        """

    def _restore(self) -> None:
        """Set what follows from the schema alone (the classes, say), after a fit or a load."""


def _plain(value: Any) -> Any:
    match value:
        case SchemaPurchase():
            return value.to_record()
        case Adjacency():
            return value.value
        case np.generic():
            return value.item()
    return value


def write_model(folder: Path, record: dict[str, Any], model: ReleasedModel, ledger: LedgerRecord) -> None:
    """Write the three files, each whole or not at all, the one that vouches for the others last.

    Args:
        folder: made where it does not exist; a model that is in it is replaced, where its ledger is the start of this.
        record: plain values, of which "privacy" holds the ledger's head.
        model: what was released.
        ledger: as it stood after the fit.

    Raises:
        LedgerError: the folder holds another ledger, whose entries would be lost. Nothing was written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **model.to_arrays())
    arrays = buffer.getvalue()
    complete = {"format": FORMAT_VERSION, **record, "arrays_sha256": hashlib.sha256(arrays).hexdigest()}
    text = json.dumps(complete, indent=1, allow_nan=False) + "\n"
    ledger.save(folder / _LEDGER)  # the one that may be refused comes first
    _replace(folder / _ARRAYS, arrays)
    _replace(folder / _MODEL, text.encode("utf-8"))


def read_model(folder: Path, estimator: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]], LedgerRecord]:
    """The record, arrays and ledger of a folder that `write_model` wrote.

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
            released = dict(arrays)
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
    return record, released, ledger


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def estimator_text(estimator: Any, most: int) -> str:
    """Epsilon and delta, the parameters that differ from their defaults, and the privacy statement of a fit.

    Args:
        estimator: a dataclass of parameters.
        most: characters, at most.
    """
    values = {field.name: (getattr(estimator, field.name), field.default) for field in dataclasses.fields(estimator)}
    shown = [
        f"{name}={_told(value)}"
        for name, (value, default) in values.items()
        if name in _ALWAYS or not _is_default(value, default)
    ]
    paid = vars(estimator).get("privacy_")
    fitted = f" [paid: {paid.in_short}]" if isinstance(paid, PrivacyStatement) else ""
    name = type(estimator).__name__
    return shortened(f"{name}({', '.join(shown)})", most - len(fitted)) + fitted


def _is_default(value: object, default: object) -> bool:
    """Returns whether a parameter is as its class has it; a value that cannot be compared is not."""
    plain = type(value) is type(default) and isinstance(value, str | int | float)
    return value is default or (plain and value == default)


def _told(value: object) -> str:
    """A parameter: a schema by its size, all else by its repr."""
    return f"<{value.in_short}>" if isinstance(value, Schema) else shortened(repr(value), 60)
