"""What a federation did, as far as its server knows: rounds, who survived them, seconds and bytes."""

from dataclasses import dataclass, field
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord:
    """One question that all owners were asked.

    Args:
        number: of the question, from 1.
        attempts: that it took.
        asked: the owners that were asked in the last attempt, by number.
        survivors: the owners whose sums are in the total.
        words: 64-bit words of the sums of one owner.
        seconds: from the question to the total.
        bytes_up: from all owners, in all attempts, as sent.
        bytes_down: to all owners.
    """

    number: int
    attempts: int
    asked: tuple[int, ...]
    survivors: tuple[int, ...]
    words: int
    seconds: float
    bytes_up: int
    bytes_down: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FederationRecord:
    """A fit of a federation.

    Args:
        session: its name in the ledgers of the server and the owners, 32 hexadecimal digits.
        owners: how many there are.
        degree, threshold: of secure aggregation: neighbours of each owner, and shares that open a seed.
        setup_bytes: up and down, before the first question.
        rounds: in their order.
        absent: the owners that did not answer when the fit began, and took no part, by number.
    """

    session: str
    owners: int
    degree: int
    threshold: int
    setup_bytes: int
    rounds: tuple[RoundRecord, ...] = field(repr=False)
    absent: tuple[int, ...] = ()

    @property
    def seconds(self) -> float:
        """Of all rounds."""
        return sum(each.seconds for each in self.rounds)

    @property
    def bytes_up(self) -> int:
        """Of all owners in all rounds."""
        return sum(each.bytes_up for each in self.rounds)

    @property
    def bytes_down(self) -> int:
        """To all owners in all rounds."""
        return sum(each.bytes_down for each in self.rounds)

    @property
    def dropped(self) -> int:
        """How often an owner was asked and is not in the total."""
        return sum(len(each.asked) - len(each.survivors) for each in self.rounds)
