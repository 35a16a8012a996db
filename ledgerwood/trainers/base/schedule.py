"""A plan's schedule: what is drawn, in which order, and which step of the loop each draw is for.

One owner: the plan's event is the composition of its stages, and the loop walks the same stages.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from ledgerwood.accounting.events import Event, Repeated


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Equal draws, one after another.

    Args:
        event: of each draw.
        steps: what the loop does with each of them; a `range` where there may be many.
        single: whether it is one draw, which is not written as a repetition.
    """

    event: Event
    steps: Sequence[Any]
    single: bool = False

    @classmethod
    def once(cls, event: Event, step: Any) -> "Stage":
        """One draw."""
        return cls(event=event, steps=(step,), single=True)

    @property
    def whole(self) -> Event:
        """All draws of the stage."""
        return self.event if self.single else Repeated(self.event, count=len(self.steps))
