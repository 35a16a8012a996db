"""Mechanisms to audit, right and wrong ones, as published: `sampler(dataset, n, rng)` draws n outputs at once.

A data set is an array of rows, or of answers to queries where the mechanism is stated for those. Names and parameters
of the sparse vector technique are those of Lyu, Su and Li 2017; scales are at epsilon 1 unless an argument says more.
"""

from collections.abc import Callable

import numpy as np

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.mechanisms import DiscreteLaplaceMechanism, Grid, LaplaceMechanism, SeededRandom

Sampler = Callable[[FloatArray, int, np.random.Generator], FloatArray]

ABOVE, BELOW, STOPPED = 1.0, 0.0, -1.0
"""Answers of the sparse vector technique, as numbers."""


# ------------------------------------------------------------------------------------------------ one number and noise


def laplace(scale: float) -> Sampler:
    """The sum of the rows and numpy's Laplace noise."""
    return lambda dataset, n, rng: dataset.sum() + rng.laplace(0.0, scale, n)


def gaussian(stddev: float) -> Sampler:
    """The sum of the rows and numpy's normal noise."""
    return lambda dataset, n, rng: dataset.sum() + rng.normal(0.0, stddev, n)


def inverse_laplace(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Laplace noise as textbooks make it: the inverse of the distribution function at a float of 53 bits."""
    uniform = rng.random(n) - 0.5
    return np.asarray(dataset.sum() - np.sign(uniform) * np.log1p(-2.0 * np.abs(uniform)))


def grid_laplace(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Our own Laplace mechanism: an exact deviate, rounded to multiples of 2**-30."""
    grid = Grid(exponents=(-30,))
    statistic = np.full((n, 1), round(float(dataset.sum()) * 2**30), dtype=np.int64)
    return grid.to_real(LaplaceMechanism(scales=(1.0,)).randomise(statistic, grid, _source(rng)))[:, 0]


def discrete_laplace(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Our own discrete Laplace mechanism, scale 1, on a count."""
    grid = Grid(exponents=(0,))
    statistic = np.full((n, 1), int(dataset.sum()), dtype=np.int64)
    return grid.to_real(DiscreteLaplaceMechanism(scale=1.0).randomise(statistic, grid, _source(rng)))[:, 0]


def truncated_geometric(most: int) -> Sampler:
    """A discrete Laplace count, clamped to [0, most]."""
    return lambda dataset, n, rng: np.clip(discrete_laplace(dataset, n, rng), 0.0, float(most))


def laplace_twice(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Two sums, each with the noise of the whole budget; shape (n, 2)."""
    return np.asarray(dataset.sum() + rng.laplace(0.0, 1.0, (n, 2)))


def laplaces(scale: float, count: int) -> Sampler:
    """Answers to `count` queries, each the sum of the rows with noise of its own; shape (n, count)."""
    return lambda dataset, n, rng: dataset.sum() + rng.laplace(0.0, scale, (n, count))


def gaussians(stddev: float, count: int) -> Sampler:
    """As `laplaces`, with normal noise."""
    return lambda dataset, n, rng: dataset.sum() + rng.normal(0.0, stddev, (n, count))


def sampled_gaussian(stddev: float, rate: float) -> Sampler:
    """The sum of rows that fair draws include at `rate`, each on its own, and normal noise."""

    def draw(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        included = rng.random((n, dataset.size)) < rate
        return np.asarray(included @ dataset + rng.normal(0.0, stddev, n))

    return draw


# ------------------------------------------------------------------------------------------------------------- averages


def average_of_exact_count(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """An average whose count and noise scale are exact: dp_auditorium's non_private_mean_v1, StatDP's NoisyAverage."""
    return np.asarray(dataset.mean() + rng.laplace(0.0, 1.0 / dataset.size, n))


def noisy_average(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """A noisy sum over a noisy count of at least 1, half of the budget each."""
    total = dataset.sum() + rng.laplace(0.0, 2.0, n)
    return np.asarray(total / np.maximum(dataset.size + rng.laplace(0.0, 2.0, n), 1.0))


# ---------------------------------------------------------------------------------------------- sparse vector technique


def sparse_vector(threshold_scale: float, query_scale: float, cutoff: int | None) -> Sampler:
    """Answers above or below a noisy threshold near 0 until `cutoff` are above; shape (n, queries)."""

    def draw(answers: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        return _stopped(_crossings(answers, n, rng, threshold_scale, query_scale)[0], cutoff)

    return draw


def sparse_vector_fresh(threshold_scale: float, query_scale: float, cutoff: int) -> Sampler:
    """Algorithm 2, Dwork and Roth's: the threshold's noise is drawn anew after each answer above it."""

    def draw(answers: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        noisy = answers + rng.laplace(0.0, query_scale, (n, answers.size))
        thresholds = rng.laplace(0.0, threshold_scale, (n, cutoff))
        found = np.empty_like(noisy)
        seen = np.zeros(n, dtype=np.int64)
        for column in range(answers.size):
            level = thresholds[np.arange(n), np.minimum(seen, cutoff - 1)]
            above = noisy[:, column] >= level
            found[:, column] = np.where(seen >= cutoff, STOPPED, np.where(above, ABOVE, BELOW))
            seen += above & (seen < cutoff)
        return found

    return draw


def sparse_vector_with_answer(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Algorithm 3, Roth's lecture notes: the first answer above is released with the noise that it was compared with.

    Shape (n, queries + 1): what was said of each query, and the number, 0 where none is above.
    """
    above, noisy = _crossings(dataset, n, rng, 2.0, 2.0)
    said = _stopped(above, 1)
    number = np.where(above.any(axis=1), noisy[np.arange(n), above.argmax(axis=1)], 0.0)
    return np.column_stack([said, number])


def _crossings(
    answers: FloatArray, n: int, rng: np.random.Generator, threshold_scale: float, query_scale: float
) -> tuple[np.ndarray, FloatArray]:
    threshold = rng.laplace(0.0, threshold_scale, (n, 1))
    noise = rng.laplace(0.0, query_scale, (n, answers.size)) if query_scale > 0.0 else np.zeros((n, answers.size))
    noisy = answers + noise
    return noisy >= threshold, noisy


def _stopped(above: np.ndarray, cutoff: int | None) -> FloatArray:
    said = np.where(above, ABOVE, BELOW)
    if cutoff is not None:
        said[np.cumsum(above, axis=1) - above >= cutoff] = STOPPED
    return said


# -------------------------------------------------------------------------------------------------------------- choices


def noisy_max(noise: str, *, value: bool = False) -> Sampler:
    """Where the largest of the answers with Laplace or exponential noise of scale 2 is; or what it is."""

    def draw(answers: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        shape = (n, answers.size)
        added = rng.laplace(0.0, 2.0, shape) if noise == "laplace" else rng.exponential(2.0, shape)
        noisy = answers + added
        return noisy.max(axis=1) if value else noisy.argmax(axis=1).astype(np.float64)

    return draw


def exponential_mechanism(utilities: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """One of K candidates, with weights e^{utility / 2}: epsilon 1 if no utility changes by more than 1."""
    return rng.choice(utilities.size, n, p=exponential_law(utilities)).astype(np.float64)


def exponential_law(utilities: FloatArray) -> FloatArray:
    """Probabilities of the candidates, shape (K,)."""
    weights = np.exp(0.5 * (utilities - utilities.max()))
    return np.asarray(weights / weights.sum())


def randomised_response(categories: int, epsilon: float) -> Sampler:
    """The one row's category with probability e^epsilon / (e^epsilon + categories - 1), else another."""

    def draw(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        keeps = rng.random(n) < np.exp(epsilon) / (np.exp(epsilon) + categories - 1)
        other = (dataset[0] + rng.integers(1, categories, n)) % categories
        return np.where(keeps, dataset[0], other)

    return draw


# ------------------------------------------------------------------------------------------- bugs outside of the noise


def clipped_sum_of_nan(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """np.clip lets NaN through, so the sum tells of it."""
    return np.asarray(np.clip(dataset, 0.0, 1.0).sum() + rng.laplace(0.0, 1.0, n))


def classes_of_the_data(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """A noisy histogram of labels 0, 1 and 2 with a bin for each class that the data have; NaN where there is none."""
    classes, counts = np.unique(dataset, return_counts=True)
    found = np.full((n, 3), np.nan)
    found[:, classes.astype(int)] = counts + rng.laplace(0.0, 1.0, (n, classes.size))
    return found


def clipped_copy(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Clips a copy of the rows to [0, 1], and sums the rows."""
    np.clip(dataset, 0.0, 1.0)
    return np.asarray(dataset.sum() + rng.laplace(0.0, 1.0, n))


def range_of_one_bound(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """A sum with noise for a sensitivity of max(|low|, |low|), diffprivlib's LinearRegression; bounds 0, 100."""
    low, high = 0.0, 100.0
    sensitivity = max(abs(low), abs(low))
    return np.asarray(np.clip(dataset, low, high).sum() + rng.laplace(0.0, 1.0, n) * sensitivity)


def histogram_of_wrong_scale(epsilon: float) -> Sampler:
    """A histogram of labels 0 and 1 whose noise has scale epsilon, for 1 / epsilon: StatDP's."""

    def draw(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        counts = np.bincount(dataset.astype(int), minlength=2)
        return np.asarray(counts + rng.laplace(0.0, epsilon, (n, 2)))

    return draw


def _source(rng: np.random.Generator) -> SeededRandom:
    return SeededRandom(int(rng.integers(2**62)))
