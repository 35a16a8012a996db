"""What a table of trees refuses before a draw is used up: by its public shape and the query alone, never by a row."""

from dataclasses import dataclass
from typing import final

from ledgerwood.curator.queries.candidate_bins import CandidateBins
from ledgerwood.curator.queries.class_counts import ClassCounts, LeafClassCounts
from ledgerwood.curator.queries.counts import CellCounts, LeafCounts
from ledgerwood.curator.queries.feature_quantiles import FeatureQuantiles
from ledgerwood.curator.queries.gains import SplitGains
from ledgerwood.curator.queries.gini import GiniSplits
from ledgerwood.curator.queries.gridless_gains import GridlessGains
from ledgerwood.curator.queries.histograms import CandidateCounts, CellHessians, CellSums, HistogramQuery, SideSums
from ledgerwood.curator.queries.known import AnyQuery
from ledgerwood.curator.queries.leaf_labels import LeafLabels
from ledgerwood.curator.queries.score_counts import ScoreCounts
from ledgerwood.curator.queries.softmax import LeafSoftmax
from ledgerwood.curator.queries.sums import LeafCurvatures, LeafMoments, LeafQuery, LeafRatios
from ledgerwood.curator.queries.whole_sums import WholeSums
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.errors import RoundViolation
from ledgerwood.schema import Numeric, Schema

TreeSelection = SplitGains | GridlessGains | GiniSplits | LeafLabels | FeatureQuantiles


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """What is public of a table, and what queries may ask of it. All methods raise RoundViolation.

    Args:
        schema: resolved.
        n_features: columns of the table.
        n_classes: of the target; 0 where it is a number, or no classes were kept.
        weighted: whether rows have weights of their own.
    """

    schema: Schema
    n_features: int
    n_classes: int
    weighted: bool

    def require_query(self, known: AnyQuery) -> None:
        """Refuse features, classes, trees or tests that are not there, and a ratio whose bound holds for equal rows."""
        match known:
            case CellCounts():
                self.require_counted(known)
            case LeafCounts():
                pass
            case CellSums() | SideSums() | CellHessians() | CandidateCounts():
                self._require_histograms(known)
            case WholeSums():
                # A subclass could state any sensitivity.
                if type(known.leaf) not in (LeafMoments, LeafCurvatures):
                    raise RoundViolation(f"{type(known.leaf).__name__} is not a query of leaves that has whole sums")
                if self.weighted:
                    raise RoundViolation("whole sums are of rows without weights: the schema has a weight_bound")
                self.require_features(known.leaf.structure)
                self.require_class(known.leaf.positive)
            case LeafSoftmax():
                self.require_classes(len(known.ensembles))
            case ClassCounts() | LeafClassCounts():
                self._require_classed(known)
            case _:
                self.require_class(known.positive if isinstance(known, LeafQuery | ScoreCounts) else None)
        if isinstance(known, LeafRatios) and not known.weighted and self.weighted:
            raise RoundViolation(
                "LeafRatios(weighted=False) states what one row changes where all weigh the same; the schema has a "
                "weight_bound: set weighted=True"
            )

    def require_selection(self, query: object) -> TreeSelection:
        """The query, if it is one of a table of trees, of features and classes that are there."""
        # The very classes: a subclass could state any cost.
        if type(query) is SplitGains:
            self.require_class(query.positive)
            self.require_features(query.structure)
            self.require_tests(query.tests)
        elif type(query) is GridlessGains:
            self.require_class(query.positive)
            self.require_features(query.structure)
            if len(query.cells) != self.n_features:
                raise RoundViolation(f"candidates of {len(query.cells)} features: the table has {self.n_features}")
        elif type(query) is GiniSplits:
            self._require_classed(query)
            self.require_tests(query.tests)
        elif type(query) is LeafLabels:
            self._require_classed(query)
        elif type(query) is FeatureQuantiles:
            self.require_counted(query.counts)
            declared = self.schema.resolved(self.n_features).features
            if not all(isinstance(declared[feature], Numeric) for feature in query.features):
                raise RoundViolation(f"quantiles of features {query.features}: categories have no order")
        else:
            raise RoundViolation(f"{type(query).__name__} is not a selection that a table of trees carries out")
        return query

    def require_features(self, structure: TreeStructure) -> None:
        """Refuse a foreign tree, or one that tests features that are not there."""
        if type(structure) is not TreeStructure:
            raise RoundViolation(f"{type(structure).__name__} is not a TreeStructure: its leaves are not known")
        # A feature outside the table would route a row by memory that is not its own.
        if not structure.tests_only(self.n_features):
            raise RoundViolation(f"a tree tests features outside {self._features}")

    def require_ensemble(self, ensemble: Ensemble) -> None:
        """Refuse a foreign ensemble: a subclass could hold values for other leaves than its trees have."""
        if not {type(ensemble), *map(type, ensemble.trees)} <= {Ensemble, Tree}:
            raise RoundViolation(f"{type(ensemble).__name__} is not an Ensemble of plain trees")

    def require_tests(self, tests: SplitTests) -> None:
        """Refuse foreign candidates, or tests of features that are not there."""
        if type(tests) is not SplitTests:
            raise RoundViolation(f"{type(tests).__name__} is not SplitTests: it could send a row left twice")
        if tests.feature.max() >= self.n_features:
            raise RoundViolation(f"a candidate tests features outside {self._features}")

    def require_bins(self, bins: object) -> None:
        """Refuse foreign bins, or those of features that are not there."""
        if type(bins) is not CandidateBins or bins.features.max() >= self.n_features:
            raise RoundViolation(f"bins of features outside {self._features}")

    def require_counted(self, query: CellCounts) -> None:
        """Refuse counts of features that are not there."""
        if max(query.features) >= self.n_features:
            raise RoundViolation(f"counts of features outside {self._features}")

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

    @property
    def _features(self) -> str:
        return f"0..{self.n_features - 1}, the table's"

    def _require_classed(self, query: ClassCounts | LeafClassCounts | LeafLabels | GiniSplits) -> None:
        self.require_classes(query.classes)
        self.require_features(query.structure)
        if isinstance(query, ClassCounts):
            self.require_bins(query.bins)

    def _require_histograms(self, query: HistogramQuery) -> None:
        if isinstance(query, SideSums):
            self.require_tests(query.tests)
        else:
            self.require_bins(query.bins)
        if isinstance(query, CellSums | SideSums):
            # A subclass could state any sensitivity.
            if type(query.leaf) not in (LeafMoments, LeafCurvatures):
                raise RoundViolation(f"{type(query.leaf).__name__} is not a query of leaves that histograms part")
            self.require_features(query.leaf.structure)
            self.require_class(query.leaf.positive)
        elif isinstance(query, CellHessians):
            self.require_class(query.positive)
