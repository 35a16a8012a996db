"""The results of a verification: of a ledger that is in order, and of one that is not."""

from dataclasses import dataclass
from typing import Literal, final

from ledgerwood.pages.shown import Card, ShowsItself, Told
from ledgerwood.pages.values import least, plain
from ledgerwood.verification.ledgers.filters import GrantVerdict, Verdict, worst


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReport(ShowsItself):
    """The result of verifying a ledger.

    Args:
        epsilon_readded: nats, the filter's total of all grants at `delta_readded`, each counted as the larger of its
            charge and the verifier's own upper bound: never below the truth. It may exceed `epsilon_budget` a little
            where the two bounds confirm a charge, by any amount where a grant is refuted or unconfirmed, and is
            infinite where a grant has no upper bound.
        delta_readded: probability; of the charges as they are recorded.
        epsilon_budget: nats.
        delta_budget: probability.
        adjacency: the relation under which all of it holds.
        unit: the protected unit: a row, a user, ...
        filter: the composition rule.
        dataset: the public label of the data, if any.
        grants: number of plans that were granted.
        draws: number of events that were drawn.
        randomness: "test" if any draw used reproducible randomness, else "secure".
        head: the last entry's hash, hexadecimal.
        verdicts: the verdict of each grant, in order.
        trusted: number of entries before the checkpoint with which the ledger begins, which nobody looked at here:
            their grants, draws and charges count in the figures above as the checkpoint states them. 0 where the
            ledger begins with its first entry.
        trusted_to: whose word it is: of the "signer", where a signature of the checkpoint or of a later entry was
            checked, else of its "writer", who may be anybody who could write to the ledger.
        owner, description, opened: who answers for the ledger, what it is for and its day of opening (ISO 8601), as
            its first entry says; None where it does not.
    """

    epsilon_readded: float
    delta_readded: float
    epsilon_budget: float
    delta_budget: float
    adjacency: str
    unit: str
    filter: str
    dataset: str | None
    grants: int
    draws: int
    randomness: Literal["secure", "test"]
    head: str
    verdicts: tuple[GrantVerdict, ...]
    trusted: int = 0
    trusted_to: Literal["signer", "writer"] | None = None
    owner: str | None = None
    description: str | None = None
    opened: str | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst of all grants: "refuted", then "unconfirmed", then "confirmed"; the last where none was made.

        "trusted" in place of "confirmed" where the ledger begins with a checkpoint.
        """
        found = worst(self.verdicts)
        return "trusted" if self.trusted and found == "confirmed" else found

    @property
    def trust(self) -> str:
        """What is taken on trust, in words; empty where nothing is."""
        if not self.trusted:
            return ""
        who = "whoever signed it" if self.trusted_to == "signer" else "whoever wrote it, who is not known here"
        return (
            f"The {self.trusted:,} entries before the checkpoint were not verified: what they spent is trusted to {who}"
        )

    def _card(self) -> Card:
        return Card(
            title=(
                f"Ledger {self.verdict}: {self.grants:,} {'grant' if self.grants == 1 else 'grants'}, "
                f"{self.draws:,} {'draw' if self.draws == 1 else 'draws'}"
            ),
            facts=(
                ("epsilon, recomputed", self.epsilon_readded),
                ("delta, recomputed", self.delta_readded),
                ("budget", f"epsilon {self.epsilon_budget:g} at delta {self.delta_budget:g}"),
                ("adjacency, unit", f"{self.adjacency}, {self.unit}"),
                ("filter", self.filter),
                ("dataset", self.dataset),
                ("owner", self.owner),
                ("description", self.description),
                ("opened", self.opened),
                ("randomness", self.randomness),
                ("head", self.head),
            ),
            notes=(*([self.trust] if self.trusted else []),
                   *(f"entry {each.entry} is {each.verdict}: {each.reason}" for each in self.verdicts
                     if each.verdict != "confirmed"))[:8],
            header=("entry", "verdict", "charge", "at least", "at most", "reason"),
            rows=tuple(
                (str(each.entry), each.verdict, f"{each.currency} {plain(each.charge)}", least(each.lower),
                 plain(each.upper), each.reason)
                for each in self.verdicts
            ),
        )  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFailure(Told):
    """A ledger that is not in order: what failed, from which entry on, and what can still be said.

    Args:
        entry: the first entry that fails; the number of entries, where the file ends in a line that was cut short.
        reason: why it fails.
        entries: number of lines that were found, those behind the failure included.
        sound: the report on the entries before `entry`; None if there are none.
    """

    entry: int
    reason: str
    entries: int
    sound: LedgerReport | None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The same in words, one finding each, the next step last."""
        found = [f"Entry {self.entry} of {self.entries} (counted from 0) fails: {self.reason}."]
        if self.sound is None:
            found.append("There is no entry before it, so nothing can be said of this ledger.")
        else:
            found += self._of_the_sound(self.sound)
        later = (
            f"Nothing from entry {self.entry} on is vouched for: entries may have been altered, added or removed "
            "there, and more may have been spent than any figure here says."
        )
        following = (
            "Next: spend nothing from this ledger; find the newest copy or export that verifies, compare its head, and "
            "ask what was spent since."
        )
        found += [later, following]
        return tuple(found)

    def _of_the_sound(self, sound: LedgerReport) -> tuple[str, str]:
        before = f"The entries before it, {sound.trusted} to {self.entry - 1}," if self.entry > 1 else "Entry 0"
        figures = (
            f"{before} form a chain in order: {sound.grants} grants ({sound.verdict}), {sound.draws} draws, a total of "
            f"epsilon {sound.epsilon_readded:.6g} at delta {sound.delta_readded:.6g}, of a budget of "
            f"{sound.epsilon_budget:.6g} at {sound.delta_budget:.6g}. It ends with head {sound.head}."
        )
        if not sound.grants:
            figures = f"{before} holds the terms alone, and nothing is granted in it. Its head is {sound.head}."
        origin = (
            "Whether these are the original entries, only a head tells that was kept elsewhere: in a signature, in a "
            "model's privacy_.ledger_head, or in a copy."
        )
        return figures, origin

    def __str__(self) -> str:
        return "\n".join(self.sentences)
