"""Neighbouring data sets: their adjacency, the privacy unit, and the budget that is stated for them."""

import enum
from dataclasses import dataclass

from ledgerwood import _validate
from ledgerwood.errors import AdjacencyMismatch


class Adjacency(enum.Enum):
    """The relation of neighbouring data sets. There is no default anywhere in the accounting."""

    ADD_REMOVE = "add-remove"
    """One unit is added or removed; the number of units is private."""
    ZERO_OUT = "zero-out"
    """One unit is replaced by a null that contributes 0 to every statistic, counts included."""
    REPLACE_ONE = "replace-one"
    """One unit is replaced by another; the number of units is public."""


class Direction(enum.Enum):
    """The direction of a privacy loss. P is the output distribution with the unit, Q the one without it."""

    REMOVE = "remove"
    """P against Q: the unit is there and is removed."""
    ADD = "add"
    """Q against P: the unit is absent and is added."""


class PrivacyUnit(enum.Enum):
    """The kind of record that is protected: a row, for example."""

    ROW = "row"
    USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A limit on the privacy loss: (epsilon, delta) under an adjacency.

    Args:
        epsilon: finite, > 0, in nats.
        delta: in [0, 1); 0 asks for pure differential privacy.
        adjacency: the relation under which the limit holds.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _validate.positive("epsilon", self.epsilon, "nats"))
        delta = _validate.non_negative("delta", self.delta, "probability")
        if delta >= 1.0:
            raise _validate.fail("delta", self.delta, "in [0, 1)", "probability")
        object.__setattr__(self, "delta", delta)
        require_adjacency(self.adjacency)


def require_adjacency(value: object) -> None:
    if not isinstance(value, Adjacency):
        raise _validate.fail("adjacency", value, "an Adjacency (ADD_REMOVE, ZERO_OUT, REPLACE_ONE)", "relation")


def common_adjacency(adjacencies: list[Adjacency], where: str) -> Adjacency:
    """The one adjacency that all members share; mixing two is an error, never a conversion."""
    first = adjacencies[0]
    for other in adjacencies[1:]:
        if other is not first:
            raise AdjacencyMismatch(
                f"{where} mixes adjacency {first.value} with {other.value}; one relation must hold throughout"
            )
    return first
