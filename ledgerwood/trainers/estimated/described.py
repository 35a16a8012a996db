"""The columns of rows whose schema is estimated, wholly or where a draft leaves it open: names and types alone."""

import dataclasses
from collections.abc import Callable
from typing import Any

from ledgerwood.curator import Numeric, Schema, TypedColumns, with_draft
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.schema import Feature, Open, OpenDate, OpenNumeric, SchemaDraft, Target, require_target


def estimated_draft(schema: object) -> SchemaDraft | None:
    """The draft whose open fields a fit estimates; None of a declared schema, of none, or of another draft."""
    return schema if isinstance(schema, SchemaDraft) and schema.estimated else None


def draft_names(schema: object) -> tuple[str, ...] | None:
    """The features that such a draft names; None where there is no draft."""
    draft = estimated_draft(schema)
    return None if draft is None else tuple(feature.name for feature in draft.features)


def require_declared(declared: Schema | None, sample_weight: object) -> None:
    """Refuse weights of rows where the schema is estimated.

    Raises:
        SchemaError: there are some.
    """
    if declared is None and sample_weight is not None:
        raise SchemaError(
            "sample_weight needs a declared schema with a weight_bound: an estimated schema has none, since "
            "the largest weight of the rows is not public"
        )


def described_columns(
    X: Any,
    y: Any,
    schema: object,
    *,
    numeric_target: bool,
    at_owners: bool,
    check_target: Callable[[Schema], None],
) -> TypedColumns:
    """The columns by their types, with what a draft says of them.

    Args:
        X, y: tables, whose values are not looked at.
        schema: of the estimator.
        numeric_target: whether it learns numbers.
        at_owners: whether the rows lie at several owners.
        check_target: refuses a declared target that the estimator does not learn.

    Raises:
        SchemaError: columns without a type, or others than the draft's.
        InvalidParameter: a target that is open in another way than the estimator learns.
    """
    found = TypedColumns.of(X, y, numeric_target=numeric_target)
    draft = estimated_draft(schema)
    if draft is not None:
        target = draft.target
        if isinstance(target, Feature):
            check_target(Schema(features=(Numeric("any", 0.0, 1.0),), target=require_target(target)))
        elif target is not None and isinstance(target, OpenNumeric | OpenDate) != numeric_target:
            learns = "numbers" if numeric_target else "classes"
            raise InvalidParameter(f"target={target!r} of the draft, and this estimator learns {learns}")
        found = with_draft(found, draft)
    return dataclasses.replace(found, at_owners=at_owners)


def draft_in(columns: TypedColumns) -> SchemaDraft | None:
    """The draft that is said of columns; None where nothing is."""
    said = tuple(column.given for column in columns.features if column.given is not None)
    return SchemaDraft(features=said, target=target_in(columns), estimated=True) if said else None


def target_in(columns: TypedColumns) -> Target | Open | None:
    """What is said of the target; None for nothing."""
    given = columns.target.given
    return given if isinstance(given, Open) else require_target(given)
