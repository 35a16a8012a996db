"""autodp's mechanisms, both ways, by their Renyi divergences alone. docs/explanation/interop.md#autodp.

autodp's other route, characteristic functions (`ComposeAFA`, `phi_off=False`), is never read: with current scipy it
returns negative epsilons.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, require_adjacency
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events.base import Event, require_event
from ledgerwood.accounting.events.stated import RenyiEvent
from ledgerwood.accounting.interop import dp_accounting
from ledgerwood.accounting.pricing import price
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, UnsupportedEvent

_ORDERS = np.unique(np.concatenate((1.0 + 2.0 ** np.arange(-6.0, 10.01, 0.125), np.arange(2.0, 65.0))))
_FLOOR = 1e-9  # (a - 1) D_a per order below which a relative margin is less than the cancellation in log(1 + tiny)
_LEAST_ORDER = 1.0 + 1e-6
_FLAG = {
    Adjacency.ADD_REMOVE: "add_remove",
    Adjacency.ZERO_OUT: "zero_out",  # a word that autodp does not know, so that it is not taken for add-remove
    Adjacency.REPLACE_ONE: "replace_one",
}


def from_autodp(
    mechanism: object, *, adjacency: Adjacency, orders: ArrayLike | None = None, margin: float = 1e-6
) -> RenyiEvent:
    """An autodp Mechanism as the event of its Renyi divergences, tabulated; between the orders by chords from above.

    The numbers are the peer's. They are raised by `margin`, relative, and by 1e-9 of it for what cancels, which covers
    the peer's rounding on a grid of sampled Gaussians; they are not proven here, and a bound from them is certified for
    the table only. Wrap one step and repeat it, not a composition whose rounding errors have accumulated.

    Args:
        mechanism: an `autodp.autodp_core.Mechanism`; only its `RenyiDP` is read.
        adjacency: the relation under which the divergences hold. autodp's flag is lost by its own compositions, and it
            has none for zero-out, so this is the caller's word; a flag that contradicts it is refused.
        orders: where to ask, real, > 1, shape (k,); by default 186 from 1.016 to 1025.
        margin: relative, >= 0, in [0, 1].

    Raises:
        UnsupportedEvent: no finite divergence at any order (a mechanism known by characteristic function or
            (epsilon, delta) only), or one that is negative, 0 or not a number.
        AdjacencyMismatch: the mechanism's own flags say otherwise.
        InvalidParameter: not a Mechanism, or an order or margin outside its bound.
        ImportError: autodp is not installed.
    """
    require_adjacency(adjacency)
    core = dp_accounting.load("autodp.autodp_core", extra="autodp")
    if not isinstance(mechanism, core.Mechanism):
        raise InvalidParameter(f"mechanism={mechanism!r} must be an autodp Mechanism (unit: object)")
    if _validate.non_negative("margin", margin, "relative") > 1.0:
        raise _validate.fail("margin", margin, "in [0, 1]", "relative")
    _check_relation(mechanism, adjacency)
    asked = renyi.check_orders(_ORDERS if orders is None else orders)
    found = np.array([_divergence(mechanism, float(order)) for order in asked])
    known = np.isfinite(found)
    if not known.any():
        raise UnsupportedEvent(
            f"{_name(mechanism)} has no finite Renyi divergence at any of the orders: a mechanism that is known by "
            "its characteristic function or its (epsilon, delta) only is refused, since autodp's Fourier accountant "
            "returns negative epsilons with current scipy; state an ApproximateEvent or ProfileEvent that is proven"
        )
    a = asked[known]
    raised = found[known] * (1.0 + margin) + margin * _FLOOR * a / (a - 1.0)
    return RenyiEvent(orders=tuple(a), divergences=tuple(raised), adjacency=adjacency)


def _check_relation(mechanism: Any, adjacency: Adjacency) -> None:
    flag = "replace_one" if getattr(mechanism, "replace_one", False) else mechanism.neighboring
    if flag != _FLAG[adjacency] and not (adjacency is Adjacency.ZERO_OUT and flag == "add_remove"):
        raise AdjacencyMismatch(
            f"{_name(mechanism)} is stated under {flag!r}; adjacency {adjacency.value} needs {_FLAG[adjacency]!r}"
        )
    if mechanism.group_size != 1:
        raise AdjacencyMismatch(
            f"{_name(mechanism)} is stated for groups of {mechanism.group_size} records, not for one"
        )


def _divergence(mechanism: Any, order: float) -> float:
    """The peer's divergence at one order; inf if it knows none."""
    with np.errstate(all="ignore"):
        value = float(mechanism.RenyiDP(order))
    if math.isnan(value) or value <= 0.0:
        raise UnsupportedEvent(
            f"{_name(mechanism)} has the Renyi divergence {value!r} at order {order!r}, which is "
            "impossible, perhaps because of rounding: give `orders` without this one"
        )
    return value


def _name(mechanism: Any) -> str:
    return f"the autodp mechanism {getattr(mechanism, 'name', type(mechanism).__name__)!r}"


def to_autodp(event: Event, *, name: str = "ledgerwood") -> Any:
    """Convert an event to an autodp Mechanism with its Renyi divergences, pure epsilon, and our (epsilon, delta).

    autodp's Composition and AmplificationBySampling read the divergences (the larger direction at each order);
    `approxDP` and `approx_delta` of the mechanism itself are those of `price(event)`.

    Args:
        event: what is released. An event without finite divergences can be asked for its own (epsilon, delta) only.
        name: autodp's name for it; its compositions need names that differ.

    Raises:
        UnsupportedEvent: no method can bound the event.
        ImportError: autodp is not installed.
    """
    require_event(event)
    core = dp_accounting.load("autodp.autodp_core", extra="autodp")
    priced, pure = price(event), event.pure_epsilon()

    def divergence(order: float) -> float:
        if order == math.inf:
            return pure
        # divergences rise with the order, so that the least order bounds order 1 and what lies below
        return float(event.renyi(np.array([max(float(order), _LEAST_ORDER)]))[0])

    def epsilon(delta: float) -> float:
        return pure if delta <= 0.0 else priced.epsilon(float(delta)) if delta < 1.0 else 0.0

    mechanism = core.Mechanism()
    mechanism.name, mechanism.params = name, {}
    mechanism.neighboring = _FLAG[event.adjacency]
    mechanism.propagate_updates(divergence, "RDP")
    mechanism.propagate_updates(epsilon, "approxDP_func")
    mechanism.eps_pureDP, mechanism.delta0 = pure, 0.0
    # autodp would take the lesser of ours and its own conversion, which is not rounded up
    mechanism.approxDP, mechanism.approx_delta = epsilon, priced.delta
    return mechanism
