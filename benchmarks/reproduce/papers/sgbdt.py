"""S-GBDT (Kirschte, Peinemann, Stock, Cotrini, Mohammadi)."""

from benchmarks.reproduce.items import Paper

PAPER = Paper(
    key="sgbdt",
    title="S-GBDT: Frugal Differentially Private Gradient Boosting Decision Trees",
    source="Kirschte, Peinemann, Stock, Cotrini, Mohammadi, arXiv:2309.12041",
    about="",
    studies=(),
    items=(),
    numbered={},
)
