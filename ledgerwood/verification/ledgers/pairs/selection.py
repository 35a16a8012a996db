"""The best of a random number of runs: known by a bound of its Renyi divergences."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ledgerwood.verification.ledgers.atoms import Number, least_between, mp, mpf
from ledgerwood.verification.ledgers.pairs.node import Node
from ledgerwood.verification.ledgers.pairs.pure import Pure


@final
@dataclass(frozen=True, slots=True)
class SelectionNode(Node):
    """The best of K runs, K of a truncated negative binomial distribution."""

    inner: Node
    shape: Number
    stopping_rate: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        raise ValueError("a selection has no profile here")

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        a = _order(constant, p)
        log_runs = -mp.log(self.stopping_rate)
        rank = _least(lambda u: (1 - u) * _divergence(self.inner, 1 / u) + u * log_runs)
        rank = min(rank, self.inner.pure_epsilon())
        bound = _divergence(self.inner, a) + (1 + self.shape) * rank + mp.log(self.mean_runs()) / (a - 1)
        return min(mp.expm1((a - 1) * bound), _pure_excess(self, p))

    def mean_runs(self) -> Number:
        """The expected number of runs."""
        if self.shape == 0:
            return (1 / self.stopping_rate - 1) / -mp.log(self.stopping_rate)
        return self.shape * (1 / self.stopping_rate - 1) / (1 - self.stopping_rate**self.shape)

    def pure_epsilon(self) -> Number:
        return (2 + self.shape) * self.inner.pure_epsilon()


@final
@dataclass(frozen=True, slots=True)
class SelectedPoisson(Node):
    """The best of K runs, K of a Poisson distribution; "no run" where K is 0."""

    inner: Node
    mean: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        raise ValueError("a selection has no profile here")

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        a = _order(constant, p)
        shift = (a - 1) * (_divergence(self.inner, a) + self.mean * self._delta(a / (a - 1)))
        moment = mp.exp(-self.mean) + self.mean * mp.exp(shift)
        return min(moment - 1, _pure_excess(self, p))

    def pure_epsilon(self) -> Number:
        inner = self.inner.pure_epsilon()
        return inner if mp.isinf(inner) else inner + self.mean * mp.tanh(inner / 2)

    def _delta(self, x: Number) -> Number:
        """The hockey-stick divergence of one run at e^epsilon = x: by its profile, or else by its divergences."""
        try:
            return max(self.inner.positive_part(mpf(1), -x), self.inner.positive_part(-x, mpf(1)))
        except ValueError:
            pure, epsilon = self.inner.pure_epsilon(), mp.log(x)
            cap = mpf(1) if mp.isinf(pure) else max(1 - mp.exp(epsilon - pure), 0) / (1 + mp.exp(-pure))

        def log_delta(u: Number) -> Number:
            b = 1 / u
            return (b - 1) * (_divergence(self.inner, b) - epsilon + mp.log(1 - u)) - mp.log(b)

        return min(mp.exp(min(_least(log_delta), 0)), cap)


def _order(constant: Number, p: Number) -> Number:
    if constant != 0:
        raise ValueError("a sample of a selection has no Renyi divergence here")
    return p if p > 1 else 1 - p


def _pure_excess(node: Node, p: Number) -> Number:
    """At most that of the randomised response of its pure epsilon: near order 1 the bounds above are far from it."""
    pure = node.pure_epsilon()
    return pure if mp.isinf(pure) else Pure(pure).excess(mpf(1), mpf(0), p)


def _divergence(node: Node, order: Number) -> Number:
    """The larger direction of the Renyi divergence, in nats."""
    excess = max(node.excess(mpf(1), mpf(0), p) for p in (order, 1 - order))
    return mp.log1p(excess) / (order - 1)


def _least(function: Callable[[Number], Number]) -> Number:
    """The least value over 0 < u < 1 of a function with one minimum, by golden sections in log(1/u - 1)."""
    # Orders from 1.0001 to three million.
    return least_between(lambda z: function(1 / (1 + mp.exp(z))), mpf(-9), mpf(15), 32)
