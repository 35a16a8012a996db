"""DP-XGBoost: Private Machine Learning at Scale (Grislain, Gonzalvez)."""

from benchmarks.reproduce.items import Paper

PAPER = Paper(
    key="dpxgboost",
    title="DP-XGBoost: Private Machine Learning at Scale",
    source="Grislain, Gonzalvez, arXiv:2110.12770",
    about="",
    studies=(),
    items=(),
    numbered={},
)
