"""A second implementation of privacy costs, in mpmath, that shares no code with `ledgerwood.accounting`.

An event is read from its JSON record into a node (records.py): a pair of distributions (continuous.py, integers.py),
or a sample, parallel groups or a composition of nodes (combined.py). The interface of a node is in continuous.py.
docs/explanation/ledger.md#verification.
"""

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf
from ledgerwood.verification.ledgers.pairs.combined import Sampled as Sampled
from ledgerwood.verification.ledgers.pairs.combined import join as join
from ledgerwood.verification.ledgers.pairs.continuous import Gaussian as Gaussian
from ledgerwood.verification.ledgers.pairs.continuous import Node as Node
from ledgerwood.verification.ledgers.pairs.records import adjacencies as adjacencies
from ledgerwood.verification.ledgers.pairs.records import draws as draws
from ledgerwood.verification.ledgers.pairs.records import parse as parse


def hockey_stick(node: Node, epsilon: Number) -> Number:
    """The larger direction of the profile at `epsilon` >= 0.

    Raises:
        ValueError: a composition that is not all Gaussian has no exact profile here.
    """
    t = mp.exp(epsilon)
    return max(node.positive_part(mpf(1), -t), node.positive_part(-t, mpf(1)))


def renyi(node: Node, order: Number) -> Number:
    """The larger direction of the Renyi divergence at `order` > 1, in nats.

    Raises:
        ValueError: a sample of a composition that is not all Gaussian, or a quadrature that does not settle.
    """
    excess = max(node.excess(mpf(1), mpf(0), p) for p in (order, 1 - order))
    return mp.log1p(excess) / (order - 1)


def pure_epsilon(node: Node) -> Number:
    """The least epsilon of pure differential privacy, in nats; infinite for Gaussian noise."""
    return node.pure_epsilon()


def mu_squared(node: Node) -> Number | None:
    """mu squared of a Gaussian pair that the node is, or that its costliest group is; None for anything else."""
    return node.mu_squared()


def unsampled(node: Node) -> Node:
    """The node with every unit in every sample: it dominates the node."""
    return node.unsampled()
