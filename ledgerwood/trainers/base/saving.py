"""Fitted models that are saved as a folder and read again."""

import dataclasses
import json
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator import Schema
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.model_files import read_model, write_model
from ledgerwood.trainers.base.privacy import PrivacyStatement
from ledgerwood.trainers.base.schema_purchase import SchemaPurchase


class AbstractSavedModel(BaseEstimator):  # type: ignore[misc]
    """What a fitted estimator is made of when it is on disk: public values only."""

    _plan_type: ClassVar[type[Any]]

    def save(self, path: str | Path) -> None:
        """Write the fitted model as a folder: model.json, arrays.npz and ledger.jsonl. Never a pickle.

        Everything in it is public: parameters, schema, released values, ledger. A test's seed is left out.

        Raises:
            LedgerError: the folder holds another ledger, whose entries would be lost. Nothing was written.
        """
        check_is_fitted(self, "ensemble_")
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
        write_model(Path(path), record, self.ensemble_, self.ledger_)

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
        record, ensemble, ledger = read_model(Path(path), cls.__name__)
        try:
            model = cls(**record["parameters"])
            model.schema_ = Schema.from_json(json.dumps(record["schema"]))
            model.n_features_in_ = _validate.count("n_features_in", record["n_features_in"], "columns")
            model.plan_ = cls._read_plan(record["plan"])
            # What was bought for one fit is no declaration: another fit buys its own.
            model.schema = model.schema_ if model.plan_.purchase is None else None
            model.privacy_ = PrivacyStatement.from_record(record["privacy"])
            names = record["feature_names_in"]
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidParameter(f"{path} is not a saved {cls.__name__}: {error!r}") from error
        if not all(tree.structure.tests_only(model.n_features_in_) for tree in ensemble.trees):
            raise InvalidParameter(f"{path} has trees that test more features than its {model.n_features_in_}")
        model.privacy_.require_backing(model.plan_.event, ledger)
        model.ensemble_, model.ledger_ = ensemble, ledger
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
