"""Reading of released models: post-processing, which has no privacy cost, since it sees released values only.

Each function takes a fitted estimator that released trees, or a `TreeModel`.
"""

from ledgerwood import _extras

try:
    from ledgerwood.reading.cards.cards import model_card as model_card
    from ledgerwood.reading.contributions import Contributions as Contributions
    from ledgerwood.reading.contributions import contributions as contributions
    from ledgerwood.reading.covers import NodeCovers as NodeCovers
    from ledgerwood.reading.covers import node_covers as node_covers
    from ledgerwood.reading.drawing import TreeBox as TreeBox
    from ledgerwood.reading.drawing import TreeDrawing as TreeDrawing
    from ledgerwood.reading.drawing import draw_tree as draw_tree
    from ledgerwood.reading.explanations import ModelExplanation as ModelExplanation
    from ledgerwood.reading.explanations import PairEffect as PairEffect
    from ledgerwood.reading.explanations import explain as explain
    from ledgerwood.reading.exports.boosters import to_xgboost as to_xgboost
    from ledgerwood.reading.exports.graphs import to_onnx as to_onnx
    from ledgerwood.reading.exports.rows import booster_rows as booster_rows
    from ledgerwood.reading.exports.rows import encoded_rows as encoded_rows
    from ledgerwood.reading.importances import FeatureImportance as FeatureImportance
    from ledgerwood.reading.importances import ImportanceTable as ImportanceTable
    from ledgerwood.reading.importances import importances as importances
    from ledgerwood.reading.models import TreeModel as TreeModel
    from ledgerwood.reading.partial_dependence import EffectAxis as EffectAxis
    from ledgerwood.reading.partial_dependence import PartialDependence as PartialDependence
    from ledgerwood.reading.partial_dependence import partial_dependence as partial_dependence
    from ledgerwood.reading.text import LabelRule as LabelRule
    from ledgerwood.reading.text import export_text as export_text
    from ledgerwood.reading.text import released_rules as released_rules
except ModuleNotFoundError as _missing:  # the base install: each name says which extra it needs
    __getattr__ = _extras.absent(__name__, _missing)

__all__ = _extras.own_names(vars())  # noqa: PLE0605
