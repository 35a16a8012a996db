"""Federated Boosted Decision Trees with Differential Privacy (Maddock, Cormode, Wang, Maple, Jha)."""

from benchmarks.reproduce.items import Paper
from benchmarks.reproduce.papers.federated import measured, theorems

PAPER = Paper(
    key="federated",
    title="Federated Boosted Decision Trees with Differential Privacy (Maddock, Cormode, Wang, Maple, Jha)",
    source="CCS 2022, arXiv:2210.02910; the text that could be had ends in section 4.3.1, on page 5 of 23",
    about="30 % of the rows are held out, by seed; AUC; epsilon .1, .5 and 1; delta is one over the public number of "
    "training rows, declared before any row is read, but 1e-5 for `dp_ebm` and 5e-8 for `recommended` on the "
    "first three tables; noise is exact and secure; schemas are declared. Values in the authors' replication data "
    "are not in the paper's text: they are means of three runs of one seed, with the number of trees chosen on "
    "the test rows. Credit 1, Nomao and Higgs cannot be had; their stand-ins are scikit-learn's "
    "`make_classification` with their rows, columns and class shares, so that orders of methods can be compared "
    "with printed ones, and AUCs cannot. {doc}`../benchmarks/federated` has the sweeps over trees, candidates, "
    "batches and features, {doc}`../benchmarks/federation` and {doc}`../benchmarks/secure_sums` all messages.",
    studies=(*theorems.STUDIES, *measured.STUDIES),
    items=(*theorems.items(), *measured.items()),
    numbered={"Table": 7, "Algorithm": 1},
)
