"""The queries that a table of trees carries out: a closed set."""

from typing import get_args

from ledgerwood.curator.queries.class_counts import ClassCounts, LeafClassCounts
from ledgerwood.curator.queries.counts import CellCounts, LeafCounts
from ledgerwood.curator.queries.histograms import HistogramQuery
from ledgerwood.curator.queries.score_counts import ScoreCounts
from ledgerwood.curator.queries.softmax import LeafSoftmax
from ledgerwood.curator.queries.sums import LabelCount, LabelMoments, LabelSum, LeafQuery, PredictionFit
from ledgerwood.curator.queries.whole_sums import WholeSums
from ledgerwood.errors import RoundViolation

AnyQuery = (
    LabelMoments
    | LabelCount
    | LabelSum
    | PredictionFit
    | LeafQuery
    | LeafSoftmax
    | LeafCounts
    | CellCounts
    | ClassCounts
    | LeafClassCounts
    | HistogramQuery
    | ScoreCounts
    | WholeSums
)


def known_query(query: object) -> AnyQuery:
    """The query, if it is one of this library's: a foreign one, or a subclass, could state any sensitivity.

    Raises:
        RoundViolation: it is not.
    """
    if isinstance(query, AnyQuery) and type(query) in get_args(AnyQuery):
        return query
    raise RoundViolation(f"{type(query).__name__} is not a query that this curator carries out")
