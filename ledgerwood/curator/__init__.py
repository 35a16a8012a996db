"""Floor 4: the only package that touches training rows."""

from ledgerwood.curator.curator import Aggregator as Aggregator
from ledgerwood.curator.curator import Curator as Curator
from ledgerwood.curator.curator import Round as Round
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
from ledgerwood.curator.queries import Query as Query
from ledgerwood.curator.release import Release as Release
from ledgerwood.curator.release import real as real
from ledgerwood.curator.schema import Categorical as Categorical
from ledgerwood.curator.schema import Numeric as Numeric
from ledgerwood.curator.schema import Schema as Schema
from ledgerwood.curator.streams import StreamCurator as StreamCurator
from ledgerwood.curator.streams import StreamRows as StreamRows
from ledgerwood.curator.streams import forget_vault as forget_vault
from ledgerwood.curator.streams import keep_vault as keep_vault
from ledgerwood.curator.streams import kept_vault as kept_vault
from ledgerwood.curator.table import Table as Table
from ledgerwood.curator.vault import RowVault as RowVault
