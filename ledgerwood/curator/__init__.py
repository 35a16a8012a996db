"""Floor 4: the only package that touches training rows."""

from ledgerwood import _extras

try:
    from ledgerwood.curator.candidate_bins import CandidateBins as CandidateBins
    from ledgerwood.curator.class_counts import ClassCounts as ClassCounts
    from ledgerwood.curator.class_counts import LeafClassCounts as LeafClassCounts
    from ledgerwood.curator.columns import ColumnTable as ColumnTable
    from ledgerwood.curator.counts import CellCounts as CellCounts
    from ledgerwood.curator.counts import LeafCounts as LeafCounts
    from ledgerwood.curator.curator import Aggregator as Aggregator
    from ledgerwood.curator.curator import Curator as Curator
    from ledgerwood.curator.encoding import column_count as column_count
    from ledgerwood.curator.encoding import encode_features as encode_features
    from ledgerwood.curator.encoding import sorted_classes as sorted_classes
    from ledgerwood.curator.encoding import two_classes as two_classes
    from ledgerwood.curator.estimates import mean_of_moments as mean_of_moments
    from ledgerwood.curator.estimates import mean_of_sum_and_count as mean_of_sum_and_count
    from ledgerwood.curator.estimates import quantiles_of_histogram as quantiles_of_histogram
    from ledgerwood.curator.feature_quantiles import FeatureQuantiles as FeatureQuantiles
    from ledgerwood.curator.gains import SplitGains as SplitGains
    from ledgerwood.curator.gains import gain_range as gain_range
    from ledgerwood.curator.gini import GiniSplits as GiniSplits
    from ledgerwood.curator.gini import gini_range as gini_range
    from ledgerwood.curator.gridless_gains import GridlessGains as GridlessGains
    from ledgerwood.curator.histograms import CandidateCounts as CandidateCounts
    from ledgerwood.curator.histograms import CellHessians as CellHessians
    from ledgerwood.curator.histograms import CellSums as CellSums
    from ledgerwood.curator.histograms import SideSums as SideSums
    from ledgerwood.curator.leaf_labels import LeafLabels as LeafLabels
    from ledgerwood.curator.leaf_labels import label_range as label_range
    from ledgerwood.curator.queries import MAX_CURVATURE_SCALE as MAX_CURVATURE_SCALE
    from ledgerwood.curator.queries import LabelCount as LabelCount
    from ledgerwood.curator.queries import LabelMoments as LabelMoments
    from ledgerwood.curator.queries import LabelSum as LabelSum
    from ledgerwood.curator.queries import LeafCurvatures as LeafCurvatures
    from ledgerwood.curator.queries import LeafMoments as LeafMoments
    from ledgerwood.curator.queries import LeafRatios as LeafRatios
    from ledgerwood.curator.queries import PredictionFit as PredictionFit
    from ledgerwood.curator.queries import Query as Query
    from ledgerwood.curator.release import Release as Release
    from ledgerwood.curator.release import Selected as Selected
    from ledgerwood.curator.release import real as real
    from ledgerwood.curator.rounds import Groups as Groups
    from ledgerwood.curator.rounds import Round as Round
    from ledgerwood.curator.schema import MAX_CATEGORIES as MAX_CATEGORIES
    from ledgerwood.curator.schema import Categorical as Categorical
    from ledgerwood.curator.schema import Category as Category
    from ledgerwood.curator.schema import Feature as Feature
    from ledgerwood.curator.schema import Numeric as Numeric
    from ledgerwood.curator.schema import Schema as Schema
    from ledgerwood.curator.score_counts import ScoreCounts as ScoreCounts
    from ledgerwood.curator.selections import ColumnBounds as ColumnBounds
    from ledgerwood.curator.selections import ColumnKeys as ColumnKeys
    from ledgerwood.curator.selections import ColumnMode as ColumnMode
    from ledgerwood.curator.selections import ColumnQuantile as ColumnQuantile
    from ledgerwood.curator.selections import ColumnQuantiles as ColumnQuantiles
    from ledgerwood.curator.selections import SelectionQuery as SelectionQuery
    from ledgerwood.curator.softmax import LeafSoftmax as LeafSoftmax
    from ledgerwood.curator.statistics import ColumnCount as ColumnCount
    from ledgerwood.curator.statistics import ColumnHistogram as ColumnHistogram
    from ledgerwood.curator.statistics import ColumnMoments as ColumnMoments
    from ledgerwood.curator.statistics import ColumnSum as ColumnSum
    from ledgerwood.curator.statistics import RowCount as RowCount
    from ledgerwood.curator.streams import StreamCurator as StreamCurator
    from ledgerwood.curator.streams import StreamRows as StreamRows
    from ledgerwood.curator.streams import forget_vault as forget_vault
    from ledgerwood.curator.streams import keep_vault as keep_vault
    from ledgerwood.curator.streams import kept_vault as kept_vault
    from ledgerwood.curator.table import Table as Table
    from ledgerwood.curator.typed_columns import TypedColumn as TypedColumn
    from ledgerwood.curator.typed_columns import TypedColumns as TypedColumns
    from ledgerwood.curator.undeclared import UndeclaredTable as UndeclaredTable
    from ledgerwood.curator.undeclared_queries import BinCounts as BinCounts
    from ledgerwood.curator.undeclared_queries import KeyCounts as KeyCounts
    from ledgerwood.curator.vault import RowVault as RowVault
    from ledgerwood.curator.whole_sums import WholeSums as WholeSums
except ModuleNotFoundError as _missing:  # the base install: each name says which extra it needs
    __getattr__ = _extras.absent(__name__, _missing)

__all__ = [*_extras.own_names(vars())]
