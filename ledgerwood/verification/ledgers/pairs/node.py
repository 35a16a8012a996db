"""What the verifier asks of a pair of distributions.

With P the distribution with the unit, Q without it and r = dP/dQ:

* the profile is E_Q[(r - t)+] (remove) and E_Q[(1 - t r)+] (add), t = e^epsilon, both affine in r, so that
  sampling (r becomes 1 - q + q r) stays affine and each leaf has a closed form;
* the Renyi divergence is log(1 + E_Q[s^p - 1 - p (s - 1)]) / (order - 1), p = order (remove) or 1 - order (add), with
  s affine in r.
"""

import abc
from collections.abc import Callable

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf


class Node(abc.ABC):
    """A pair of distributions, or what combines such pairs. Frozen; equal by value."""

    __slots__ = ()

    @abc.abstractmethod
    def positive_part(self, slope: Number, constant: Number) -> Number:
        """E_Q[(slope r + constant)+], of either sign of the slope.

        Raises:
            ValueError: no exact profile is known here.
        """

    @abc.abstractmethod
    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        """E_Q[s^p - 1 - p (s - 1)] with s = slope r + constant, slope + constant = 1; p > 1 or p < 0.

        Raises:
            ValueError: no such moment is known here, or a quadrature does not settle.
        """

    @abc.abstractmethod
    def pure_epsilon(self) -> Number:
        """The least epsilon of pure differential privacy, in nats, or infinity."""

    def mu_squared(self) -> Number | None:
        """mu squared of the Gaussian pair that the node is; None for anything else."""
        return None

    def unsampled(self) -> "Node":
        """The node with every unit in every sample."""
        return self


def moment_term(slope: Number, constant: Number, p: Number) -> Callable[[Number], Number]:
    """s^p - 1 - p (s - 1) as a function of log r."""

    def term(log_ratio: Number) -> Number:
        rise = slope * mp.expm1(log_ratio)
        log_s = log_ratio if constant == 0 else mp.log1p(rise)  # 1 + rise may be less than the digits hold
        return mp.expm1(p * log_s) - p * rise

    return term


def positive_part_of(atoms: list[tuple[Number, Number]], slope: Number, constant: Number) -> Number:
    """E_Q[(slope r + constant)+] of a discrete pair: `atoms` are (log r, Q), no infinite log ratio among them."""
    return sum((weight * max(slope * mp.exp(level) + constant, 0) for level, weight in atoms), mpf(0))


def excess_of(atoms: list[tuple[Number, Number]], slope: Number, constant: Number, p: Number) -> Number:
    """E_Q[s^p - 1 - p (s - 1)] of a discrete pair."""
    term = moment_term(slope, constant, p)
    return sum((weight * term(level) for level, weight in atoms), mpf(0))
