"""DPBoost's theorems, lemmas, corollaries and algorithms: the largest loss or change that was found, beside the bound.

Nothing here has chance in it but a search for the worst case, whose seed is fixed. g* is 1 throughout.
"""

import dataclasses
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.reproduce import judging
from benchmarks.reproduce.items import Found, Item, Reading, Study
from benchmarks.utility import Scale
from ledgerwood import Numeric, Schema, price
from ledgerwood.trainers import DPBoostRegressor

LAMBDAS = (0.1, 1.0, 10.0)
RATE, LAMBDA, TREES = 0.1, 0.1, 50
"""The paper's."""
MOST_ROWS = 5_000
Floats = NDArray[np.float64]


# ------------------------------------------------------------------------------------------- mechanisms and composition


def laplace_loss() -> float:
    """Theorem 1: the largest log ratio of two Laplace densities, means apart by 1, over epsilon."""
    outputs, worst = np.linspace(-20.0, 20.0, 40_001), 0.0
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        densities = [0.5 * epsilon * np.exp(-epsilon * np.abs(outputs - mean)) for mean in (0.0, 1.0)]
        worst = max(worst, float(np.max(np.abs(np.log(densities[0] / densities[1])))) / epsilon)
    return worst


def exponential_loss() -> float:
    """Theorem 2: the largest log ratio of a choice when each utility moves by at most Delta, over epsilon.

    One utility rises and all others fall, which is the worst case; up to a million candidates, at many epsilons.
    """
    worst = 0.0
    for epsilon, others in itertools.product((0.01, 0.1, 1.0, 3.0), (1.0, 10.0, 1e3, 1e6)):
        chosen = np.log1p(others) - np.log1p(others * np.exp(-epsilon))
        worst = max(worst, float(chosen) / epsilon)
    return worst


def response(epsilon: float, answer: int) -> Floats:
    """Randomised response: the probabilities of its two outputs."""
    kept = 1.0 / (1.0 + np.exp(-epsilon))
    return np.array([kept, 1.0 - kept] if answer == 0 else [1.0 - kept, kept])


def together(parts: list[Floats]) -> Floats:
    """The distribution of independent outputs."""
    joint = np.ones(1)
    for part in parts:
        joint = np.outer(joint, part).ravel()
    return joint


def composed_loss() -> float:
    """Theorem 3: the largest log ratio over all outputs of eight randomised responses, over the sum of epsilons."""
    epsilons = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 2.0)
    with_row, without = (together([response(e, answer) for e in epsilons]) for answer in (1, 0))
    return float(np.max(np.abs(np.log(with_row / without)))) / sum(epsilons)


def parallel_loss() -> float:
    """Theorem 4: the same where the row is in one part only, whichever it is, over the largest epsilon."""
    epsilons = (0.05, 0.2, 0.5, 1.0, 2.0)
    without = together([response(e, 0) for e in epsilons])
    worst = 0.0
    for own in range(len(epsilons)):
        with_row = together([response(e, int(place == own)) for place, e in enumerate(epsilons)])
        worst = max(worst, float(np.max(np.abs(np.log(with_row / without)))))
    return worst / max(epsilons)


# ------------------------------------------------------------------------------------------------- gains, leaves, clips


def sums_of(rows: Floats) -> tuple[Floats, Floats]:
    """Pairs (rows, sum of gradients): for each number of rows sums from all of -1 to all of 1."""
    shares = np.linspace(-1.0, 1.0, 41)
    return np.repeat(rows, len(shares)), np.outer(rows, shares).ravel()


def gain_change(reg_lambda: float) -> float:
    """The largest change of a side's gain by one row more, of gradient -1 or 1."""
    rows, total = sums_of(np.arange(MOST_ROWS, dtype=np.float64))
    before = total**2 / (rows + reg_lambda)
    return max(float(np.max(np.abs((total + g) ** 2 / (rows + 1.0 + reg_lambda) - before))) for g in (-1.0, 1.0))


def gain_bound(reg_lambda: float) -> float:
    """Lemma 1."""
    return (3.0 * reg_lambda + 2.0) / ((reg_lambda + 1.0) * (reg_lambda + 2.0))


def leaf_change(reg_lambda: float, clip: float = np.inf) -> float:
    """The largest change of a leaf, clipped, by one row more, of gradient -1 or 1."""
    rows, total = sums_of(np.arange(MOST_ROWS, dtype=np.float64))
    before = np.clip(-total / (rows + reg_lambda), -clip, clip)
    after = (np.clip(-(total + g) / (rows + 1.0 + reg_lambda), -clip, clip) for g in (-1.0, 1.0))
    return max(float(np.max(np.abs(each - before))) for each in after)


def clipped_leaf_excess() -> float:
    """Corollary 2: the largest change of a leaf that is clipped as its tree is, over the bound, in 50 trees."""
    worst = 0.0
    for reg_lambda, tree in itertools.product(LAMBDAS, range(1, TREES + 1)):
        clip = (1.0 - RATE) ** (tree - 1)
        worst = max(worst, leaf_change(reg_lambda, clip) / min(1.0 / (1.0 + reg_lambda), 2.0 * clip))
    return worst


def filtering_excess() -> float:
    """Theorem 5: the largest error of a leaf by filtering, over the bound, of many random nodes and of extreme ones."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(20_000):
        kept, left_out = rng.integers(1, 50, 2)
        reg_lambda = float(rng.choice([0.0, 0.1, 1.0, 10.0]))
        signs = rng.choice([-1.0, 1.0], 2)
        inner = signs[0] if rng.random() < 0.5 else rng.uniform(-1.0, 1.0)
        outer = signs[1] * rng.uniform(1.0, 5.0)
        rows, total = kept + left_out, kept * inner + left_out * outer
        error = abs(total / (rows + reg_lambda) - kept * inner / (kept + reg_lambda))
        worst = max(worst, error / (left_out / rows * (abs(outer) + 1.0)))
    return worst


def leaf_decay(reg_lambda: float) -> Floats:
    """Theorem 6: |V_t| of a leaf of one row, over (1 - eta)^(t - 1), for t = 1 to 50, squared loss, label -1."""
    score, found = 0.0, []
    for tree in range(TREES):
        value = -(score + 1.0) / (1.0 + reg_lambda)
        found.append(abs(value) / (1.0 - RATE) ** tree)
        score += RATE * value
    return np.array(found)


# ------------------------------------------------------------------------------------------------------ what plans cost


def plan_costs() -> dict[str, float]:
    """Exact pure epsilons of our plans with the paper's settings, of budget 1; and of one tree of epsilon 1."""
    schema = Schema.uniform(0.0, 1.0, n_features=3, target=Numeric("y", -1.0, 1.0))

    def plan(trees: int) -> Any:
        return DPBoostRegressor(
            epsilon=1.0, delta=0.0, schema=schema, preset="paper", n_estimators=trees, trees_per_ensemble=50
        ).make_plan(schema)

    one, many = plan(50), plan(1_000)
    tree = dataclasses.replace(one, tree_epsilon=1.0)
    return {
        "tree": price(tree.tree_event).epsilon(0.0),
        "one ensemble": price(one.event).epsilon(0.0),
        "20 ensembles": price(many.event).epsilon(0.0),
        "tree of 20 ensembles": many.tree_epsilon,
    }


def run(_: Scale) -> Found:
    """All of it: seconds, without chance."""
    return {
        "loss over epsilon": {
            "Laplace": laplace_loss(),
            "exponential": exponential_loss(),
            "sequence": composed_loss(),
            "disjoint": parallel_loss(),
        },
        "gain": {str(each): {"largest": gain_change(each), "bound": gain_bound(each)} for each in LAMBDAS},
        "leaf": {str(each): {"largest": leaf_change(each), "bound": 1.0 / (1.0 + each)} for each in LAMBDAS},
        "clipped leaf over bound": clipped_leaf_excess(),
        "filtering over bound": filtering_excess(),
        "decay over bound": {str(each): leaf_decay(each).tolist() for each in (0.0, LAMBDA)},
        "costs": plan_costs(),
    }


STUDY = Study(name="theorems", run=run, seeds=0)


# ------------------------------------------------------------------------------------------------------------- the rows


def loss(part: str) -> Any:
    """A loss that the paper bounds by epsilon."""
    return lambda found: judging.covered(1.0, found["loss over epsilon"][part], what="largest loss over epsilon")


def change(part: str) -> Any:
    """The largest change that was found, for each lambda; all are covered, or the bound is wrong."""

    def read(found: Found) -> Reading:
        each = found[part]
        excess = max(values["largest"] / values["bound"] for values in each.values())
        judged = judging.covered(1.0, excess, what="largest change over bound")
        cells = "; ".join(f"lambda {name}: {values['largest']:.4f}" for name, values in each.items())
        bounds = "; ".join(f"lambda {name}: {values['bound']:.4f}" for name, values in each.items())
        return Reading(ours=cells, as_printed=bounds, verdict=judged.verdict)

    return read


def decay(found: Found) -> Reading:
    """Theorem 6: the first tree whose leaf exceeds the bound."""
    over = np.array(found["decay over bound"][str(LAMBDA)])
    most = judging.covered(1.0, float(over.max()), what=f"largest leaf over bound, lambda {LAMBDA}")
    first = f"; above 1 from tree {int(np.argmax(over > 1.0)) + 1} on" if over.max() > 1.0 else ""
    none = max(found["decay over bound"]["0.0"])
    return dataclasses.replace(most, ours=f"{most.ours}{first}; lambda 0: {none:.5f}")


def unsound(cost: str, said: str, *names: str) -> Any:
    """A statement that specimens refute, beside the cost of our plan for the same purpose."""

    def read(found: Found) -> Reading:
        sound = f"{said}: epsilon {found['costs'][cost]:.6f}"
        return dataclasses.replace(judging.refuted(*names), ours=sound)

    return read


def two_levels(found: Found) -> Reading:
    """Figure 1: an ensemble costs what one tree costs, and ensembles add up."""
    costs = found["costs"]
    apart = abs(20.0 * costs["tree of 20 ensembles"] - costs["20 ensembles"])
    judged = judging.covered(1.0, max(costs["one ensemble"], costs["20 ensembles"]), what="")
    cells = f"50 trees in one ensemble: epsilon {costs['one ensemble']:.6f}; 1,000 in twenty, each of "
    cells += f"{costs['tree of 20 ensembles']:.4f}: {costs['20 ensembles']:.6f}"
    return Reading(ours=cells, verdict=judged.verdict if apart < 1e-6 else "does not hold")


ITEMS = (
    Item(
        number="Definition 1",
        says="epsilon-differential privacy, for data sets that differ in a single record.",
        printed="Pr[f(D) in O] <= e^epsilon Pr[f(D') in O]",
        study="theorems",
        read=loss("sequence"),
        sentence="Read as one row more or less, as its proofs do; for a replaced row a leaf changes by more than Lemma "
        "2 says. All sets of outputs of eight randomised responses.",
    ),
    Item(
        number="Definition 2",
        says="Sensitivity: the largest L1 distance of a function's values.",
        printed="max |f(D) - f(D')|_1",
        study="theorems",
        read=change("leaf"),
        sentence="Of leaves, by a search over all sums: what Lemma 2 states.",
    ),
    Item(
        number="Theorem 1",
        says="The Laplace mechanism of scale sensitivity / epsilon provides epsilon.",
        printed="epsilon",
        study="theorems",
        read=loss("Laplace"),
        sentence="The log ratio of the two densities never exceeds epsilon.",
    ),
    Item(
        number="Theorem 2",
        says="The exponential mechanism, exp(epsilon u / (2 Delta u)), provides epsilon.",
        printed="epsilon",
        study="theorems",
        read=loss("exponential"),
        sentence="One utility rises by Delta u and a million others fall by it: the loss tends to epsilon from below.",
    ),
    Item(
        number="Theorem 3",
        says="Sequential composition: epsilons add up.",
        printed="sum of epsilons",
        study="theorems",
        read=loss("sequence"),
        sentence="All outputs of eight randomised responses were enumerated: the bound is attained.",
    ),
    Item(
        number="Theorem 4",
        says="Parallel composition: functions on disjoint subsets cost the largest epsilon.",
        printed="largest epsilon",
        study="theorems",
        read=loss("disjoint"),
        errata=("errata-dpboost-subsets",),
        sentence="For one row more or less, and subsets that depend on nothing but the row itself. The subsets of "
        "Algorithm 2 are not like that: see Theorem 8.",
    ),
    Item(
        number="Lemma 1",
        says="The gain changes by at most (3 lambda + 2) / ((lambda + 1)(lambda + 2)) g*^2.",
        printed="(3 lambda + 2) / ((lambda + 1)(lambda + 2)) g*^2: .9957 at lambda .1",
        study="theorems",
        read=change("gain"),
        errata=("errata-dpboost-gain",),
        sentence="The worst case is a row whose gradient differs in sign from all others; the change tends to 3 "
        "g*^2 for "
        "every lambda. The released code has 3 g*^2 since November 2020.",
    ),
    Item(
        number="Lemma 2",
        says="A leaf changes by at most g* / (1 + lambda).",
        printed="g* / (1 + lambda): .9091 at lambda .1",
        study="theorems",
        read=change("leaf"),
        sentence="The largest change is that of an empty leaf.",
    ),
    Item(
        number="Corollary 1",
        says="With filtering, Lemmas 1 and 2 hold with g_l*.",
        printed=".9957 and .9091 at lambda .1",
        study="theorems",
        read=change("gain"),
        errata=("errata-dpboost-gain",),
        sentence="The half about leaves holds; the half about gains fails as Lemma 1 does.",
    ),
    Item(
        number="Theorem 5",
        says="Filtering moves a leaf by at most p (|mean filtered gradient| + g*).",
        printed="p (|g_f| + g_l*)",
        study="theorems",
        read=lambda found: judging.covered(1.0, found["filtering over bound"], what="largest error over bound"),
        sentence="Twenty thousand nodes, many of them extreme; `tests/curator/test_filtering_error.py` checks real "
        "leaves.",
    ),
    Item(
        number="Theorem 6",
        says="With one row a leaf, |V_t| <= g_l* (1 - eta)^(t - 1).",
        printed="g_l* (1 - eta)^(t - 1)",
        study="theorems",
        read=decay,
        errata=("errata-dpboost-misprints",),
        sentence="A step takes eta / (1 + lambda) off the gradient and not eta. It holds at lambda 0. Privacy does "
        "not rest "
        "on it, since leaves are clipped.",
    ),
    Item(
        number="Corollary 2",
        says="With filtering and clipping, leaves of tree t change by at most "
        "min(g_l* / (1 + lambda), 2 g_l* (1 - eta)^(t - 1)).",
        printed="min(g_l* / (1 + lambda), 2 g_l* (1 - eta)^(t - 1))",
        study="theorems",
        read=lambda found: judging.covered(1.0, found["clipped leaf over bound"], what="largest change over bound"),
        sentence="If noise and clip have the same t. Line 14 of Algorithm 2 breaks this: see there.",
    ),
    Item(
        number="Theorem 7",
        says="Algorithm 1 satisfies epsilon_t.",
        printed="epsilon_t",
        study="theorems",
        read=unsound("tree", "our tree of epsilon 1", "dpboost-gain-sensitivity", "dpboost-quantile-bins"),
        errata=("errata-dpboost-gain", "errata-dpboost-data-reads"),
        sentence="It rests on Lemma 1, and the candidates of line 6 are values of the rows. Ours has the range 4 "
        "g*^2 and a "
        "public grid.",
    ),
    Item(
        number="Theorem 8",
        says="Algorithm 2 satisfies epsilon.",
        printed="epsilon",
        study="theorems",
        read=unsound("one ensemble", "our plan for epsilon 1", "dpboost-subset-sizes", "dpboost-gain-sensitivity"),
        errata=("errata-dpboost-subsets",),
        sentence="Sizes of subsets that are shares of the number of rows change with one row. Ours deals each row "
        "to a tree "
        "independently, with public probabilities.",
    ),
    Item(
        number="Algorithm 1",
        says="TrainSingleTree is epsilon_t-private.",
        printed="epsilon_t",
        study="theorems",
        read=unsound("tree", "our tree of epsilon 1", "dpboost-gain-sensitivity", "dpboost-quantile-bins"),
        errata=("errata-dpboost-gain", "errata-dpboost-loose"),
        sentence="Unsound choices (Lemma 1), and leaves with Depth_max times too much noise: line 14 has the "
        "epsilon of a "
        "level. Ours: `ledgerwood.trainers.dpboost.training.train_tree`.",
    ),
    Item(
        number="Algorithm 2",
        says="The boosting framework is epsilon-private.",
        printed="epsilon",
        study="theorems",
        read=unsound(
            "20 ensembles", "our twenty ensembles for epsilon 1", "dpboost-geometric-index", "dpboost-subset-sizes"
        ),
        errata=("errata-dpboost-leaf-clipping", "errata-dpboost-subsets", "errata-dpboost-misprints"),
        sentence="Line 14 takes t over the whole model, so that later ensembles have almost no noise. Ours counts t "
        "inside "
        "the ensemble, in clip and noise.",
    ),
    Item(
        number="Figure 1",
        says="Two levels: ensembles in sequence, disjoint trees inside.",
        printed="a drawing: epsilons add up between ensembles, and not inside",
        study="theorems",
        read=two_levels,
        sentence="The plan's event is priced without data.",
    ),
)
