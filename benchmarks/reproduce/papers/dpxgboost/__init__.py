"""DP-XGBoost: Private Machine Learning at Scale (Grislain, Gonzalvez)."""

from benchmarks.reproduce.items import Paper
from benchmarks.reproduce.papers.dpxgboost import equations, figures, rows

ABOUT = """\
Sound figures are those of {doc}`../explanation/dpxgboost` with `preset="paper"`: 20 trees of depth 6, rate .3, lambda
.1, a tenth of the rows a tree, a minimum child weight of 50, secure noise, pure epsilon for one row more or less,
public bounds. "As printed" is the paper's own mechanism, UNSOUND, on public rows (`benchmarks/dpxgboost_printed.py`):
exact minimum weights, the noise of equation 7, samples without replacement. Test error is in percent; RMSE in the
label's unit. Each seed holds 30 % of the rows out; differences are paired by seed. The paper has no theorems; its
statements on privacy are the remarks. {doc}`../benchmarks/dpxgboost` has more data sets, and {doc}`../errata` the
proofs."""

PAPER = Paper(
    key="dpxgboost",
    title="DP-XGBoost: Private Machine Learning at Scale (Grislain, Gonzalvez)",
    source="arXiv:2110.12770",
    about=ABOUT.replace("\n", " "),
    studies=(equations.STUDY, *figures.STUDIES),
    items=(*equations.ITEMS, *rows.ITEMS),
    numbered={"Equation": 7, "Algorithm": 1, "Figure": 6},
)
