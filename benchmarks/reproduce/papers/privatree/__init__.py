"""Differentially-Private Decision Trees and Provable Robustness to Data Poisoning (Vos, Vos, Li, Erkin, Verwer)."""

from benchmarks.reproduce.items import Paper
from benchmarks.reproduce.papers.privatree import figures, guarantees, tables, theorems

PAPER = Paper(
    key="privatree",
    title="Differentially-Private Decision Trees and Provable Robustness to Data Poisoning "
    "(Vos, Vos, Li, Erkin, Verwer)",
    source="arXiv:2305.15394",
    about="Trees of depth 4 on the rows of the tabular benchmark and of UCI that the paper names, rebuilt from public "
    "recipes (`benchmarks/privatree_recipes.py`): 14 of 29 tables, 12 of them with all rows and columns. A seed "
    "chooses the rows of the larger class, and five folds with equal shares of the classes. Schemas are declared, "
    "noise is exact and secure, privacy is pure, under add-remove. *Sound* costs the stated epsilon. *As printed* "
    "is this library's code with the noise that Equations 7 to 10 give each feature, which costs about as many "
    "times epsilon as there are features: the ledger of such a run has the true sum. "
    "{doc}`../benchmarks/privatree` and {doc}`../benchmarks/poisoning` have more variants.",
    studies=(*theorems.STUDIES, *tables.STUDIES, *guarantees.STUDIES, *figures.STUDIES),
    items=(*theorems.items(), *tables.items(), *guarantees.items(), *figures.items()),
    numbered={"Definition": 3, "Theorem": 4, "Corollary": 4, "Algorithm": 1},
)
