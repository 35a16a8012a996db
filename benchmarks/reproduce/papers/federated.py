"""Federated Boosted Decision Trees with Differential Privacy (Maddock, Cormode, Wang, Maple, Jha)."""

from benchmarks.reproduce.items import Paper

PAPER = Paper(
    key="federated",
    title="Federated Boosted Decision Trees with Differential Privacy",
    source="Maddock, Cormode, Wang, Maple, Jha, CCS 2022, arXiv:2210.02910",
    about="",
    studies=(),
    items=(),
    numbered={},
)
