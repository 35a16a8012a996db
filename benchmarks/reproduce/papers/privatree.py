"""Differentially-Private Decision Trees and Provable Robustness to Data Poisoning (Vos, Vos, Li, Erkin, Verwer)."""

from benchmarks.reproduce.items import Paper

PAPER = Paper(
    key="privatree",
    title="Differentially-Private Decision Trees and Provable Robustness to Data Poisoning",
    source="Vos, Vos, Li, Erkin, Verwer, arXiv:2305.15394",
    about="",
    studies=(),
    items=(),
    numbered={},
)
