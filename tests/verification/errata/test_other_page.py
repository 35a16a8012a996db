"""The figures in the text of docs/errata.md's sections on the federated framework, PrivaTree and the peers."""

import math
import re
from pathlib import Path

import numpy as np

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "errata.md").read_text(encoding="utf-8")


def number(pattern):
    """The figure that a sentence of the page shows; `#` stands for it."""
    found = re.search(re.escape(pattern).replace(r"\#", r"(\d*\.?\d+)"), PAGE)
    assert found, pattern
    return float(found.group(1))


def test_the_sensitivity_of_logistic_pairs():
    u = np.linspace(0.0, 1.0, 1_000_001)
    hessian = u * (1 - u)
    assert (u**2 + hessian**2).max() == 1.0 == u[(u**2 + hessian**2).argmax()]
    assert number("The noise is $#$ times too large") == round(math.sqrt(17) / 4, 3)
    assert number("| $#$, not $4.25$; the code has the former |") == round(math.sqrt(1 + 1 / 16), 3)
    assert number(r"u^2 + 16\,u^2 (1 - u)^2 = #$") == round(float((u**2 + 16 * hessian**2).max()), 3)
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
