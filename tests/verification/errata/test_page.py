"""docs/errata.md shows what the specimens compute, and no other figure."""

import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import ledgerwood as lw
from ledgerwood.verification.errata import SPECIMENS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "verification.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^\((errata-[\w-]+)\)=\n(.*?)(?=^\(errata-|\Z)", PAGE, flags=re.DOTALL | re.MULTILINE))
NUMBER = r"\$?(\d*\.\d+)\$?"


def table(specimen):
    kind = type(specimen)
    head = (f"| {{py:class}}`~{kind.__module__}.{kind.__name__}` | claimed | exact |", "|---|---|---|")
    return [*head, *(f"| {row.quantity} | {row.claimed:.4g} | {row.exact:.4g} |" for row in specimen.rows())]


@pytest.mark.slow_after(55)  # the exact loss of each specimen
@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
def test_the_page_shows_the_specimens_figures(specimen):
    lines = [*SECTIONS[specimen.anchor].splitlines(), ""]
    expected = table(specimen)
    assert expected[0] in lines
    start = lines.index(expected[0])
    assert lines[start : start + len(expected) + 1] == [*expected, ""]


@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
def test_the_reference_lists_the_specimen(specimen):
    assert f".. autoclass:: {type(specimen).__module__}.{type(specimen).__name__}\n" in REFERENCE


def test_every_table_of_figures_is_a_specimens():
    assert PAGE.count("| claimed | exact |") == len(SPECIMENS)


def test_every_entry_says_claim_reason_and_remedy():
    without = {
        f"errata-{name}" for name in ("sgbdt-subsampling", "sgbdt-misprints", "dpboost-loose", "dpboost-misprints")
    }
    without |= {"errata-dpxgboost-loose", "errata-dpxgboost-misprints", "errata-privatree-misprints"}
    without |= {"errata-federated-loose", "errata-federated-misprints"}
    without |= {"errata-peers-read-only", "errata-table"}
    for anchor, text in SECTIONS.items():
        if anchor not in without:
            assert [mark in text for mark in ("*Claim.*", "*Why it fails.*", "*Here.*")] == [True] * 3, anchor
            assert any(specimen.anchor == anchor for specimen in SPECIMENS), anchor


def numbers(section, pattern):
    """The figures that a sentence of the page shows; `#` stands for one."""
    found = re.search(re.escape(pattern).replace(r"\#", NUMBER).replace(r"\ ", r"\s+"), SECTIONS[section])
    assert found, pattern
    return [float(value) for value in found.groups()]


def refined(order, rho, delta):
    """Canonne, Kamath, Steinke 2020, Proposition 12."""
    return rho + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def theorem_14(order, rate, rho):
    """The printed bound at a whole order, rho a function of the order."""
    terms = np.arange(2, order + 1)
    binomials = gammaln(order + 1) - gammaln(terms + 1) - gammaln(order - terms + 1)
    logs = binomials + (order - terms) * math.log1p(-rate) + terms * math.log(rate) + (terms - 1) * rho(terms)
    logs[1:] += math.log(3.0)
    first = (order - 1) * math.log1p(-rate) + math.log(order * rate - rate + 1)
    return float(logsumexp([first, *logs])) / (order - 1)


def test_the_conversions_in_the_text():
    order, rho, delta = 50, 0.5, 1e-5
    (printed,) = numbers("errata-sgbdt-conversion", r"the printed rule gives $\varepsilon = #$")
    mironov, better = numbers(
        "errata-sgbdt-conversion",
        "the right one gives #,\nand its refinement (Canonne, Kamath, Steinke 2020, Proposition 12) #.",
    )
    assert printed == round((rho - math.log(delta)) / order, 3)
    assert mironov == round(rho - math.log(delta) / (order - 1), 3)
    assert better == round(refined(order, rho, delta), 3)


RATE, TREES, MULTIPLIER, DELTA = 0.1, 150, 10.0, 5e-8
SENTENCE = r"150 trees at rate $.1$, multiplier 10, $\delta = 5 \cdot 10^{-8}$"


def gaussian(orders):
    return orders / (2 * MULTIPLIER**2)


def test_the_plan_in_the_text():
    sampled = lw.PoissonSampled(
        lw.GaussianEvent(noise_multiplier=MULTIPLIER, adjacency=lw.Adjacency.ADD_REMOVE), sampling_rate=RATE
    )
    exact = lw.price(lw.Repeated(sampled, count=TREES)).epsilon_interval(DELTA)
    shown, printed = numbers(
        "errata-sgbdt-conversion", f"{SENTENCE} cost #; Theorem 14 and Algorithm 7 as printed say #"
    )
    assert round(exact[0], 3) == round(exact[1], 3) == shown
    assert printed == round((TREES * theorem_14(400, RATE, gaussian) - math.log(DELTA)) / 400, 4)
    assert printed < exact[0] / 10

    again, dear = numbers(
        "errata-sgbdt-subsampling", f"{SENTENCE}: #; by Theorem 14 and the refined conversion #. The released"
    )
    assert again == shown
    assert dear == round(
        min(refined(order, TREES * theorem_14(order, RATE, gaussian), DELTA) for order in range(2, 400)), 3
    )


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
@pytest.mark.parametrize(
    "event",
    [
        lw.GaussianEvent(noise_multiplier=2.0, adjacency=lw.Adjacency.ADD_REMOVE),
        lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE),
        lw.PureEvent(epsilon=1.0, adjacency=lw.Adjacency.ADD_REMOVE),
    ],
    ids=["gaussian", "laplace", "pure"],
)
def test_theorem_14_is_dear_and_not_wrong(event, rate):
    exact = lw.PoissonSampled(event, sampling_rate=rate).renyi([2.0, 3.0, 8.0, 32.0])
    printed = [theorem_14(order, rate, lambda orders: event.renyi(orders.astype(float))) for order in (2, 3, 8, 32)]
    assert printed[0] == pytest.approx(exact[0], rel=1e-9)  # order 2 has no factor 3, and is exact
    assert (np.array(printed[1:]) > exact[1:]).all()


def test_the_misprints_are_misprints():
    # The sign of Algorithms 4 and 5: one leaf, no noise, squared loss; the printed value takes scores away from labels.
    labels, scores, rate = np.array([1.0, 0.5]), np.zeros(2), 0.1
    value = (scores - labels).sum() / labels.size
    distance = abs((labels - scores).mean())
    assert abs((labels - (scores + rate * value)).mean()) == pytest.approx((1 + rate) * distance)
    assert abs((labels - (scores - rate * value)).mean()) == pytest.approx((1 - rate) * distance)
    # Definition 2 for single outputs: (row, tag), the tag one of 1 / delta, at epsilon 0.
    tags = 1000
    with_row, without = (
        dict.fromkeys(((1, t) for t in range(tags)), 1 / tags),
        dict.fromkeys(((0, t) for t in range(tags)), 1 / tags),
    )
    delta = 1 / tags
    assert all(mass <= without.get(output, 0.0) + delta for output, mass in with_row.items())
    assert sum(max(mass - without.get(output, 0.0), 0.0) for output, mass in with_row.items()) == pytest.approx(1.0)
    # Algorithm 9: the threshold with a minus leaves the range [2, 3).
    assert not any(2 <= u - 2 < 3 for u in np.linspace(0, 1, 11, endpoint=False))


# -------------------------------------------------------------------------------------------- DPBoost and DP-XGBoost


def figures(pattern):
    """The figures that a sentence of the page shows; `#` stands for one."""
    found = re.search(re.escape(pattern).replace(r"\#", r"(\d*\.?\d+)").replace(r"\ ", r"\s+"), PAGE)
    assert found, pattern
    return [float(value) for value in found.groups()]


def figure(pattern):
    (value,) = figures(pattern)
    return value


def lemma_1(lam):
    return (3 * lam + 2) / ((lam + 1) * (lam + 2))


def test_lemma_1():
    small, factor = figures(r"At $\lambda = .1$ the lemma says $#$, $#$ times too little")
    assert (small, factor) == (round(lemma_1(0.1), 4), round(3 / lemma_1(0.1), 2))
    large, factor = figures(r"at $\lambda = 10$ it says $#$, $#$ times too little")
    assert (large, factor) == (round(lemma_1(10), 4), round(3 / lemma_1(10), 1))


@pytest.mark.parametrize("lam", [Fraction(1, 10), Fraction(10)])
def test_the_identity_of_the_proof(lam):
    for n, r, g in ((0, 0, 1), (3, Fraction(1, 3), -1), (50, -1, Fraction(1, 2)), (1000, 1, -1)):
        m = n + lam
        s = r * n
        change = (s + g) ** 2 / (m + 1) - s**2 / m
        assert change == m / (m + 1) * (2 * g * s / m - s**2 / m**2) + Fraction(g) ** 2 / (m + 1)
        assert -3 < change <= Fraction(g) ** 2


@pytest.mark.parametrize("weight", [Fraction(1, 2), Fraction(3)])
def test_weights_scale_the_changes_of_the_gain(weight):
    # (S + w g)^2 / (m + w) - S^2 / m over S / m and g in [-1, 1].
    grid = [Fraction(k, 4) for k in range(-4, 5)]
    changes = [
        (r * m + weight * g) ** 2 / (m + weight) - r**2 * m
        for m in (Fraction(1, 10), Fraction(1), Fraction(10_000))
        for r in grid
        for g in grid
    ]
    assert -3 * weight < min(changes) < Fraction(-299, 100) * weight
    assert max(changes) <= weight


def test_the_misprinted_shares():
    first, second = figures(r"with a small $t_e$, at $\eta = .1$, the first two trees take $#$ and $#$ of the rows")
    assert [round(0.1 * 0.9**t / (1 - 0.9**t), 3) for t in (1, 2)] == [first, second]
    assert first + second > 1
    meant = [0.1 * 0.9**t / (1 - 0.9**50) for t in range(50)]
    assert math.fsum(meant) == pytest.approx(1.0)
    # As printed t mod T_e is 0 for the last tree of an ensemble, which then has the largest share.
    printed = [0.1 * 0.9 ** (t % 50) / (1 - 0.9**50) for t in range(1, 51)]
    assert max(printed) == printed[-1]


def test_theorem_6_holds_for_ten_trees():
    # One row alone in its leaf, squared loss, label -1, as in the proof: V_t = -(score + 1) / (1 + lambda).
    score, exceeded = 0.0, []
    for tree in range(1, 30):
        value = -(score + 1) / 1.1
        if abs(value) > 0.9 ** (tree - 1):
            exceeded.append(tree)
        score += 0.1 * value
    (shown,) = figures("the bound is exceeded from tree # on")
    assert exceeded == list(range(int(shown), 30))


@pytest.mark.parametrize("t", [1e-2, 1e-4])
def test_the_newton_gain_moves_by_4_over_t(t):
    # n rows of gradient 1 - t and hessian t (1 - t), n large against 1 / t, and one of -(1 - t): (n - 1)^2 for n^2.
    n, g, h = 1e4 / t, 1 - t, t * (1 - t)
    less = (n * g) ** 2 / (n * h) - ((n - 1) * g) ** 2 / ((n + 1) * h)
    more = ((n + 1) * g) ** 2 / ((n + 1) * h) - (n * g) ** 2 / (n * h)
    assert more + less == pytest.approx(4 / t, rel=0.05)


def test_equation_7_needs_the_rows_before_the_new_one():
    def change(n, lam):
        return (2 * n + lam) / ((n + lam) * (n + 1 + lam))

    assert all(change(n, 0.1) <= 2 / 51.1 for n in range(50, 500))
    assert change(49, 0.1) > 2 / 51.1


# ------------------------------------------------------------------------------- federated framework, PrivaTree, peers


def test_the_sensitivity_of_logistic_pairs():
    u = np.linspace(0.0, 1.0, 1_000_001)
    hessian = u * (1 - u)
    assert (u**2 + hessian**2).max() == 1.0 == u[(u**2 + hessian**2).argmax()]
    assert figure("The noise is $#$ times too large") == round(math.sqrt(17) / 4, 3)
    assert figure("| $#$, not $4.25$; the code has the former |") == round(math.sqrt(1 + 1 / 16), 3)
    assert figure(r"u^2 + 16\,u^2 (1 - u)^2 = #$") == round(float((u**2 + 16 * hessian**2).max()), 3)
    assert (u**2 + (3.33 * hessian) ** 2).max() == 1.0


def test_theorem_3_by_features():
    # m (epsilon - epsilon_leaf) + epsilon_leaf at .1 and .05, as the specimen's rows have it.
    shown = dict(re.findall(r"^\| pure epsilon, (\d+) features \| 0\.1 \| ([\d.]+) \|$", PAGE, flags=re.MULTILINE))
    assert {int(m): float(value) for m, value in shown.items()} == {
        m: round(m * 0.05 + 0.05, 3) for m in (8, 14, 26, 419)
    }


def test_the_forest_by_trees():
    shown = dict(re.findall(r"^\| pure epsilon, (\d+) trees \| 0\.1 \| ([\d.]+) \|$", PAGE, flags=re.MULTILINE))
    assert {int(t): float(value) for t, value in shown.items()} == {t: round((2 * t - 1) * 0.1, 3) for t in (10, 100)}


def test_the_noisy_number_of_rows_is_above_2_half_of_the_time():
    ratio = math.exp(-0.005)
    assert round(ratio / (1 + ratio), 2) == 0.5
    assert 1 / (1 - ratio) > 200  # the mean excess above, in rows
