"""What is declared in public about a table: its columns, their ranges and categories, and drafts of that."""

from ledgerwood import _extras

try:
    from ledgerwood.schema.dates import LATEST as LATEST
    from ledgerwood.schema.dates import Date as Date
    from ledgerwood.schema.dates import Feature as Feature
    from ledgerwood.schema.dates import Ranged as Ranged
    from ledgerwood.schema.dates import Target as Target
    from ledgerwood.schema.dates import as_given as as_given
    from ledgerwood.schema.dates import iso_days as iso_days
    from ledgerwood.schema.dates import object_days as object_days
    from ledgerwood.schema.dates import require_target as require_target
    from ledgerwood.schema.dates import scale_of as scale_of
    from ledgerwood.schema.dates import spelled_days as spelled_days
    from ledgerwood.schema.declared import Schema as Schema
    from ledgerwood.schema.drafts import SchemaDraft as SchemaDraft
    from ledgerwood.schema.drafts import refuse_draft as refuse_draft
    from ledgerwood.schema.features import LEAST_WEIGHT_BOUND as LEAST_WEIGHT_BOUND
    from ledgerwood.schema.features import LEAST_WIDTH as LEAST_WIDTH
    from ledgerwood.schema.features import MAX_CATEGORIES as MAX_CATEGORIES
    from ledgerwood.schema.features import MAX_CATEGORY as MAX_CATEGORY
    from ledgerwood.schema.features import MOST_WEIGHT_BOUND as MOST_WEIGHT_BOUND
    from ledgerwood.schema.features import MOST_WEIGHT_RATIO as MOST_WEIGHT_RATIO
    from ledgerwood.schema.features import Categorical as Categorical
    from ledgerwood.schema.features import Category as Category
    from ledgerwood.schema.features import Numeric as Numeric
    from ledgerwood.schema.features import require_name as require_name
    from ledgerwood.schema.opens import Open as Open
    from ledgerwood.schema.opens import OpenCategorical as OpenCategorical
    from ledgerwood.schema.opens import OpenColumn as OpenColumn
    from ledgerwood.schema.opens import OpenDate as OpenDate
    from ledgerwood.schema.opens import OpenNumeric as OpenNumeric
except ModuleNotFoundError as _missing:  # the base install: each name says which extra it needs
    __getattr__ = _extras.absent(__name__, _missing)
