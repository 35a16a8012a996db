"""Learners that other people write: private by their own statement, some of them not; stand-ins for what is audited."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import GaussianNB

from ledgerwood import Adjacency, Event, GaussianEvent, Repeated


class NoisyGaussianNB(GaussianNB):
    """Gaussian naive Bayes with Laplace noise on the counts, sums and squares of each class: epsilon in all.

    Args:
        epsilon: for a row more or less; a third each for the count, the sums and the squares of its class.
        bounds: lower and upper ends of the features; None takes them from the rows, as diffprivlib does with a warning,
            so that one row decides about the noise.
        random_state: of the noise.
    """

    def __init__(
        self, epsilon: float = 1.0, bounds: tuple[float, float] | None = None, random_state: Any = None
    ) -> None:
        super().__init__()
        self.epsilon, self.bounds, self.random_state = epsilon, bounds, random_state

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Release."""
        rng = np.random.default_rng(self.random_state)
        low, high = (X.min(axis=0), X.max(axis=0)) if self.bounds is None else self.bounds
        X, reach, features = np.clip(X, low, high), np.maximum(np.abs(low), np.abs(high)), X.shape[1]
        scale = 3.0 / self.epsilon
        self.classes_ = np.array([0, 1])
        theta, var, counts = [], [], []
        for label in (0, 1):
            own = X[y == label]
            count = max(1.0, len(own) + rng.laplace(scale=scale))
            sums = own.sum(axis=0) + reach * rng.laplace(scale=scale * features, size=features)
            squares = (own**2).sum(axis=0) + reach**2 * rng.laplace(scale=scale * features, size=features)
            counts.append(count)
            theta.append(sums / count)
            var.append(np.maximum(squares / count - theta[-1] ** 2, 1e-9))
        self.theta_, self.var_ = np.array(theta), np.array(var)
        self.class_prior_ = np.array(counts) / np.sum(counts)
        return self


STEPS, SIGMA = 20, 4.0
SGD_CLAIM: Event = Repeated(GaussianEvent(noise_multiplier=SIGMA, adjacency=Adjacency.ADD_REMOVE), count=STEPS)
"""What `NoisySGD` costs with all of its noise: epsilon 4.98 at delta 1e-5."""


class NoisySGD(ClassifierMixin, BaseEstimator):
    """Logistic regression by 20 full steps on gradients that are clipped to 1, with Gaussian noise of multiplier 4.

    Args:
        share: of that noise; 1 / 30 is what a forgotten factor leaves.
        random_state: of the noise.
    """

    def __init__(self, share: float = 1.0, random_state: Any = None) -> None:
        self.share, self.random_state = share, random_state

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Release the weights."""
        rng = np.random.default_rng(self.random_state)
        self.classes_ = np.array([0, 1])
        rows = np.column_stack([X, np.ones(len(X))])
        weights = np.zeros(rows.shape[1])
        for _ in range(STEPS):
            gradients = rows * (1.0 / (1.0 + np.exp(-np.clip(rows @ weights, -50.0, 50.0))) - y)[:, np.newaxis]
            gradients /= np.maximum(1.0, np.linalg.norm(gradients, axis=1))[:, np.newaxis]
            noise = rng.normal(scale=SIGMA * self.share, size=len(weights))
            weights = weights - 0.1 * (gradients.sum(axis=0) + noise)
        self.coef_ = weights
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[np.int64]:
        """Classes."""
        scores = np.column_stack([X, np.ones(len(X))]) @ self.coef_
        return (scores > 0.0).astype(np.int64)
