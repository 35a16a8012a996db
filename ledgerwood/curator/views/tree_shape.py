"""What is public of a table of trees, and what may be asked of it: refused before a draw is used up, never by a row."""

from dataclasses import dataclass
from typing import final

from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.errors import RoundViolation
from ledgerwood.schema import Schema


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeShape:
    """The public shape of a table of trees. All methods raise RoundViolation.

    Args:
        schema: resolved.
        n_features: columns of the table.
        n_classes: of the target; 0 where it is a number, or no classes were kept.
        weighted: whether rows have their own weights.
        bins: even steps of a numeric feature's range, which its cells are; None for cells that were given as such.
    """

    schema: Schema
    n_features: int
    n_classes: int
    weighted: bool
    bins: int | None = None

    @property
    def features(self) -> str:
        """The numbers of the features, for an error."""
        return f"0..{self.n_features - 1}, the table's"

    def require_structure(self, structure: TreeStructure) -> None:
        """Refuse a foreign tree, or one that tests features that are not there."""
        if type(structure) is not TreeStructure:
            raise RoundViolation(f"{type(structure).__name__} is not a TreeStructure: its leaves are not known")
        # A feature outside the table would route a row by memory that is not its own.
        if not structure.tests_only(self.n_features):
            raise RoundViolation(f"a tree tests features outside {self.features}")

    def require_ensemble(self, ensemble: Ensemble) -> None:
        """Refuse a foreign ensemble: a subclass could hold values for other leaves than its trees have."""
        if not {type(ensemble), *map(type, ensemble.trees)} <= {Ensemble, Tree}:
            raise RoundViolation(f"{type(ensemble).__name__} is not an Ensemble of plain trees")

    def require_tests(self, tests: SplitTests) -> None:
        """Refuse foreign candidates, or tests of features that are not there."""
        if type(tests) is not SplitTests:
            raise RoundViolation(f"{type(tests).__name__} is not SplitTests: it could send a row left twice")
        if tests.feature.max() >= self.n_features:
            raise RoundViolation(f"a candidate tests features outside {self.features}")

    def require_class(self, positive: int | None) -> None:
        """Refuse a class that is not there, and none where there are several."""
        if positive is None:
            if self.n_classes > 2:
                raise RoundViolation(f"the target has {self.n_classes} classes: a query names the positive one")
        elif positive >= self.n_classes:
            raise RoundViolation(f"class {positive} is not one of the table's {self.n_classes}")

    def require_classes(self, classes: int) -> None:
        """Refuse another number of classes than the target's."""
        if classes != self.n_classes:
            raise RoundViolation(f"the query is of {classes} classes, and the table of {self.n_classes}")
