"""Floor 4: the only package that touches training rows."""

from ledgerwood.curator.curator import Aggregator as Aggregator
from ledgerwood.curator.curator import Curator as Curator
from ledgerwood.curator.curator import Release as Release
from ledgerwood.curator.curator import Round as Round
from ledgerwood.curator.curator import real as real
from ledgerwood.curator.encoding import column_count as column_count
from ledgerwood.curator.encoding import encode_features as encode_features
from ledgerwood.curator.encoding import sorted_classes as sorted_classes
from ledgerwood.curator.queries import MAX_CURVATURE_SCALE as MAX_CURVATURE_SCALE
from ledgerwood.curator.queries import LabelCount as LabelCount
from ledgerwood.curator.queries import LabelMoments as LabelMoments
from ledgerwood.curator.queries import LabelSum as LabelSum
from ledgerwood.curator.queries import LeafCurvatures as LeafCurvatures
from ledgerwood.curator.queries import LeafMoments as LeafMoments
from ledgerwood.curator.queries import LeafRatios as LeafRatios
from ledgerwood.curator.queries import PredictionFit as PredictionFit
from ledgerwood.curator.queries import Query as Query
from ledgerwood.curator.schema import Categorical as Categorical
from ledgerwood.curator.schema import Numeric as Numeric
from ledgerwood.curator.schema import Schema as Schema
from ledgerwood.curator.table import Table as Table
