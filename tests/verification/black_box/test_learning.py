"""What learned scores are, where the best score is known."""

import numpy as np

from ledgerwood.verification.black_box.learning import of_weighted_columns
from ledgerwood.verification.black_box.scores import of_columns


def _laplace_twice(shift: float, rng: np.random.Generator) -> np.ndarray:
    """One number with Laplace noise of scale 1, released twice: both columns tell the same."""
    return np.repeat(shift + rng.laplace(size=(50_000, 1)), 2, axis=1)


def test_weighted_sum_counts_what_two_columns_share_once():
    rng = np.random.default_rng(1)
    first, second = _laplace_twice(1.0, rng), _laplace_twice(0.0, rng)
    plain = of_columns(first, second)
    weighted = of_weighted_columns(first, second, plain)[0].score
    far = np.array([[3.0, 3.0], [-3.0, -3.0]])  # its log ratio is 1, and -1
    np.testing.assert_allclose(plain(far), [2.0, -2.0], atol=0.2)
    np.testing.assert_allclose(weighted(far), [1.0, -1.0], atol=0.1)


def test_weighted_sum_leaves_a_column_without_news_out():
    """Behind a first number comes its sum with noise that is the same for both data sets."""
    rng = np.random.default_rng(2)
    parts = []
    for shift in (1.0, 0.0):
        number = shift + rng.laplace(size=50_000)
        parts.append(np.column_stack([number, number + rng.laplace(scale=1.0, size=50_000)]))
    plain = of_columns(*parts)
    weighted = of_weighted_columns(*parts, plain)[0].score
    far = np.array([[3.0, 3.0], [3.0, -3.0], [-3.0, -3.0]])  # by the first column: 1, 1 and -1
    assert np.ptp(plain(far[:2])) > 0.5
    np.testing.assert_allclose(weighted(far), [1.0, 1.0, -1.0], atol=0.15)
