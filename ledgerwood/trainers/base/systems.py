"""Trainers by name: those of this library, and those that other packages bring.

A package makes a trainer known by an entry point of the group "ledgerwood.trainers". The entry point's name is the
system's, and its object is a `System`. This library's own are declared in the same way: docs/how-to/write-a-trainer.md.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import final

from ledgerwood.errors import InvalidParameter
from ledgerwood.schema import Categorical, Schema
from ledgerwood.trainers.base.trainer import AbstractTrainer

GROUP = "ledgerwood.trainers"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A trainer that is known by a name.

    Args:
        title: what messages call it.
        classifier: the estimator for a target of classes; None if the system learns no classes.
        regressor: the estimator for a numeric target; None if the system learns no numbers.
        preset: the value of the parameter `preset` where the command line names none; None leaves the estimator's own.
        lacks: parameters that many systems have and this one does not, each with the reason, for error messages.

    Raises:
        InvalidParameter: a class that is no estimator of this package's base, or none at all.
    """

    title: str
    classifier: type[AbstractTrainer] | None = None
    regressor: type[AbstractTrainer] | None = None
    preset: str | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.estimators:
            raise InvalidParameter(f"System(title={self.title!r}) needs a classifier or a regressor")
        for kind in self.estimators:
            if AbstractTrainer not in getattr(kind, "__mro__", ()):
                raise InvalidParameter(
                    f"{kind!r} is no trainer: subclass ledgerwood.trainers.AbstractClassifier or AbstractRegressor"
                )

    @property
    def estimators(self) -> tuple[type[AbstractTrainer], ...]:
        """The estimator classes, the classifier first."""
        return tuple(kind for kind in (self.classifier, self.regressor) if kind is not None)

    def for_target(self, schema: Schema) -> type[AbstractTrainer]:
        """The estimator that a schema's target asks for.

        Raises:
            InvalidParameter: the schema names no target, or one that the system does not learn.
        """
        if schema.target is None:
            raise InvalidParameter("the schema names no target: add one, a numeric or a categorical feature")
        return self.for_labels(
            classes=isinstance(schema.target, Categorical), said=f"the schema's target is {schema.target!r}"
        )

    def for_labels(self, *, classes: bool, said: str) -> type[AbstractTrainer]:
        """The estimator for labels that are classes, or numbers.

        Args:
            classes: which they are.
            said: why they are that, for the error.

        Raises:
            InvalidParameter: the system does not learn them.
        """
        kind = self.classifier if classes else self.regressor
        if kind is None:
            learned = "numbers" if self.classifier is None else "classes"
            raise InvalidParameter(f"{self.title} learns {learned}; {said}")
        return kind

    def estimator(self, schema: Schema) -> AbstractTrainer:
        """An unfitted estimator for the schema's target, with the system's usual parameters.

        Raises:
            InvalidParameter: as of `for_target`.
        """
        model = self.for_target(schema)(schema=schema)
        if self.preset is not None:
            model.set_params(preset=self.preset)
        return model


@functools.cache
def declared() -> Mapping[str, EntryPoint]:
    """The entry points of the group by name; nothing is imported yet.

    Raises:
        InvalidParameter: two packages declare the same name.
    """
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        if point.name in found and found[point.name].value != point.value:
            raise InvalidParameter(
                f"two packages declare the trainer {point.name!r}: {found[point.name].value} and {point.value}; "
                "uninstall one of them"
            )
        found[point.name] = point
    return found


@functools.cache
def system(name: str) -> System:
    """The system of this name, imported from the package that declares it.

    Raises:
        InvalidParameter: no package declares it, or what is declared is not a `System`.
    """
    if name not in declared():
        known = ", ".join(map(repr, sorted(declared())))
        raise InvalidParameter(f"system={name!r} must be one of {known} (unit: name)", parameter="system")
    point = declared()[name]
    found = point.load()
    if not isinstance(found, System):
        raise InvalidParameter(f"{point.value}, declared as the trainer {name!r}, is not a ledgerwood.trainers.System")
    return found


def estimator_named(name: str) -> type[AbstractTrainer]:
    """The estimator class of this name, of whichever system.

    Raises:
        InvalidParameter: no system has it, or two systems have different classes of this name.
    """
    found = [kind for each in declared() for kind in system(each).estimators if kind.__name__ == name]
    if not found:
        known = sorted({kind.__name__ for each in declared() for kind in system(each).estimators})
        raise InvalidParameter(f"estimator={name!r} is not known; known are {', '.join(known)} (unit: name)")
    if any(kind is not found[0] for kind in found):
        homes = ", ".join(sorted({f"{kind.__module__}.{kind.__name__}" for kind in found}))
        raise InvalidParameter(
            f"two packages have an estimator {name!r}: {homes}; load the model with the class itself, or uninstall one"
        )
    return found[0]


def trainer_of(trainer: object, schema: Schema | None) -> object:
    """What was given; of a system's name its estimator for the schema's target.

    Raises:
        InvalidParameter: no such system, or a name without a schema.
    """
    if not isinstance(trainer, str):
        return trainer
    chosen = system(trainer)
    if schema is None:
        raise InvalidParameter(
            f"schema=None: {trainer!r} names a system, whose estimator follows from a schema's target"
        )
    return chosen.estimator(schema)
