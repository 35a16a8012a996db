"""Whether all noise of a plan can be added in shares: what clients need who add it themselves.

docs/explanation/federated.md#noise-shares.
"""

from ledgerwood.accounting.events.base import Event, children
from ledgerwood.accounting.events.composition import Composed, Repeated
from ledgerwood.accounting.events.noise.skellam import SkellamEvent, SkellamVectorEvent
from ledgerwood.errors import UnsupportedEvent


def require_shared_noise(event: Event) -> None:
    """Refuse a plan with a draw whose noise several clients cannot add in shares; it names the draw's event.

    Only Skellam noise on whole numbers is accepted, drawn once or many times one after another. A sample is refused
    with any noise: it amplifies only against those who do not know who takes part.

    Args:
        event: of the whole plan.

    Raises:
        UnsupportedEvent: another event at any depth, or one that is not the library's.
    """
    waiting = [event]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Composed | Repeated):
            waiting.extend(reversed(children(here)))
        elif not isinstance(here, SkellamEvent | SkellamVectorEvent):
            children(here)  # a foreign class is refused as what it is
            raise UnsupportedEvent(
                f"clients cannot add shares of the noise of {type(here).__name__}: a plan whose noise they add draws "
                "Skellam noise only (SkellamEvent, SkellamVectorEvent), unsampled; set noise='skellam' in the "
                "estimator, or let the server add the noise"
            )
