"""Privacy-Preserving Gradient Boosting Decision Trees (Li, Wu, Wen, He)."""

from benchmarks.reproduce.items import Paper

PAPER = Paper(
    key="dpboost",
    title="Privacy-Preserving Gradient Boosting Decision Trees",
    source="Li, Wu, Wen, He, AAAI 2020, arXiv:1911.04209",
    about="",
    studies=(),
    items=(),
    numbered={},
)
