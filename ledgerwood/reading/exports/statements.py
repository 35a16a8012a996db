"""What an exported model says of itself in its metadata: its privacy statement, and how its rows are encoded."""

import json
from typing import Any

from ledgerwood.curator import Date, Feature, Numeric
from ledgerwood.reading.cards.contents import is_certified
from ledgerwood.reading.models import TreeModel
from ledgerwood.trainers.base.trainer import AbstractTrainer

DAYS = "days since 1970-01-01"


def export_notes(model: Any, read: TreeModel) -> dict[str, str]:
    """Texts by name, JSON but for the first one; released and public values only.

    Args:
        model: the estimator; of a `TreeModel` there is no privacy statement.
        read: its trees.

    Returns:
        "ledgerwood_estimator" and "ledgerwood_privacy", where there is one; "ledgerwood_features", of each column its
        name, and its range (of dates in days) or its categories in the order of their numbers; "ledgerwood_target"
        alike. An infinite epsilon is null, and not certified.
    """
    stated = {}
    if isinstance(model, AbstractTrainer):
        record = {**model.privacy_.to_record(), "certified": is_certified(model.privacy_)}
        stated = {
            "ledgerwood_estimator": type(model).__name__,
            "ledgerwood_privacy": json.dumps(record, allow_nan=False),
        }
    target = read.schema.target
    assert target is not None  # of a `TreeModel`
    return {
        **stated,
        "ledgerwood_features": json.dumps([_described(feature) for feature in read.features], allow_nan=False),
        "ledgerwood_target": json.dumps(
            _described(target) if isinstance(target, Numeric) else {"name": target.name, "categories": read.classes}
        ),
    }


def _described(feature: Feature) -> dict[str, object]:
    if isinstance(feature, Date):
        bounds = {"first": feature.first, "last": feature.last}
        return {"name": feature.name, **bounds, "low": feature.low, "high": feature.high, "unit": DAYS}
    if isinstance(feature, Numeric):
        return {"name": feature.name, "low": feature.low, "high": feature.high}
    return {"name": feature.name, "categories": feature.categories}
