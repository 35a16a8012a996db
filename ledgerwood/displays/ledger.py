"""Pictures of a ledger: how much of the budget is granted, by entry, purpose or analyst, and how much is left."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final, get_args

from ledgerwood import _validate
from ledgerwood.accounting.filters import Charges
from ledgerwood.accounting.ledger import CheckpointEntry, DrawEntry, GrantEntry, Ledger, LedgerRecord
from ledgerwood.accounting.ledger.state import charged
from ledgerwood.displays import style
from ledgerwood.displays.base import AbstractDisplay
from ledgerwood.pages.values import least, most, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

By = Literal["entry", "purpose", "analyst"]
NOBODY = "no analyst"
_EARLIER = "before the checkpoint"
"""What a record that begins with a checkpoint states of all grants before it is one step."""
_MOST_BARS = 12
_VOID = "No privacy guarantee"
_VOID_SHORT = f"{_VOID}: reproducible (test) noise"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GrantStep:
    """One grant in the picture.

    Args:
        entry: its place in the ledger; of all grants before a checkpoint that of the checkpoint.
        purpose, analyst: as the entry says; `analyst` is None where nobody shares the budget.
        spent: the ledger's epsilon after this grant, by its filter, rounded up.
        added: by how much this grant raised it, at least 0. The parts follow the order of the grants.
        drawn: the share of the plan's events that were drawn, in [0, 1].
    """

    entry: int
    purpose: str
    analyst: str | None
    spent: float
    added: float
    drawn: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetDisplay(AbstractDisplay):
    """The epsilon of a ledger's grants beside its budget.

    Args:
        steps: one for each grant, in order.
        epsilon, delta: the budget.
        title: the data set's label, or empty.
        reproducible: whether any draw used reproducible ("test") randomness, which protects nobody.
        by: "entry" draws the total after each grant, with a hollow dot where events of the grant are still to be drawn;
            "purpose" and "analyst" draw a bar for each, and one for what is left.
    """

    steps: tuple[GrantStep, ...]
    epsilon: float
    delta: float
    title: str = ""
    by: By = "entry"
    reproducible: bool = False

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise _validate.fail("by", self.by, "'entry', 'purpose' or 'analyst'", "name")

    @classmethod
    def from_ledger(cls, ledger: Ledger | LedgerRecord, *, by: By = "entry") -> "BudgetDisplay":
        """Read a ledger, or the record of one that a model keeps.

        Args:
            ledger: its entries are read once; later ones are not in the picture.
            by: see the class.

        Raises:
            InvalidParameter: no ledger, or another `by`.
        """
        if not isinstance(ledger, Ledger | LedgerRecord):
            raise _validate.fail("ledger", ledger, "a Ledger or a LedgerRecord", "ledger")
        record = ledger.record() if isinstance(ledger, Ledger) else ledger
        terms = record.terms
        drawn = Counter(entry.grant for entry in record.entries if isinstance(entry, DrawEntry))
        steps: list[GrantStep] = []
        charges, before = Charges(), 0.0
        first = record.entries[0]
        if isinstance(first, CheckpointEntry) and first.spent.grants:
            charges = charged(first.spent, terms.filter)
            before = terms.filter.spent(charges, terms.budget).epsilon
            steps.append(
                GrantStep(
                    entry=first.index,
                    purpose=_EARLIER,
                    analyst=_EARLIER,
                    spent=before,
                    added=before,
                    drawn=0.0 if first.held else 1.0,
                )
            )
        for entry in record.entries:
            if not isinstance(entry, GrantEntry):
                continue
            charges.append(entry.charge)
            spent = terms.filter.spent(charges, terms.budget).epsilon
            planned = sum(count for _, count in entry.event.draws())
            share = drawn[entry.index] / planned if planned else 1.0
            steps.append(
                GrantStep(
                    entry=entry.index, purpose=entry.purpose, analyst=entry.analyst, spent=spent,
                    added=max(spent - before, 0.0), drawn=share,
                )
            )  # fmt: skip
            before = spent
        return cls(
            steps=tuple(steps),
            epsilon=terms.budget.epsilon,
            delta=terms.budget.delta,
            title=terms.dataset or "",
            by=by,
            reproducible=record.randomness == "test",
        )

    @property
    def spent(self) -> float:
        """The total of all grants."""
        return self.steps[-1].spent if self.steps else 0.0

    @property
    def parts(self) -> Mapping[str, float]:
        """The epsilon of each purpose, or of each analyst, the largest first; "left" is not one of them."""
        found: Counter[str] = Counter()
        for step in self.steps:
            found[step.purpose if self.by == "purpose" else step.analyst or NOBODY] += step.added  # type: ignore[assignment]
        return dict(sorted(found.items(), key=lambda part: -part[1]))

    @property
    def alt(self) -> str:
        left = max(self.epsilon - self.spent, 0.0)
        text = (
            f"Budget of the ledger{f' {self.title}' if self.title else ''}: epsilon {plain(self.epsilon)} at delta "
            f"{plain(self.delta)}; granted {plain(self.spent)} in {len(self.steps)} entries, {least(left)} left."
        )
        if self.reproducible:
            text = f"{_VOID}: a draw used reproducible (test) randomness. {text}"
        if self.by == "entry":
            open_ = sum(step.drawn < 1.0 for step in self.steps)
            return f"{text} Grants with events that are still to be drawn: {open_}." if open_ else text
        return f"{text} {'; '.join(f'{name}: {plain(value)}' for name, value in self.parts.items())}."

    def _draw(self, ax: "Axes", colours: style.Palette) -> None:
        if self.by == "entry":
            self._draw_steps(ax, colours)
        else:
            self._draw_bars(ax, colours)
        above = [_VOID_SHORT] if self.reproducible else []
        if self.title:
            above.append(style.shortened(self.title))
        if above:
            ax.set_title("\n".join(above), loc="left", fontsize=style.TITLE)

    def _draw_steps(self, ax: "Axes", colours: style.Palette) -> None:
        colour = colours.series[0]
        places = [0, *(step.entry for step in self.steps)]
        totals = [0.0, *(step.spent for step in self.steps)]
        ax.step(places, totals, where="post", color=colour, linewidth=1.8, label="granted")
        for whole, face, label in ((True, colour, None), (False, "none", "not all drawn")):
            chosen = [step for step in self.steps if (step.drawn >= 1.0) is whole]
            if chosen:
                ax.plot(
                    [step.entry for step in chosen], [step.spent for step in chosen], linestyle="none", marker="o",
                    markersize=5.0, color=colour, markerfacecolor=face, label=label,
                )  # fmt: skip
        ax.axhline(self.epsilon, label="budget", color=colours.series[1], linestyle=style.DASHES[1], linewidth=1.4)
        ax.set_ylim(0.0, 1.12 * max(self.epsilon, self.spent))
        ax.set_xlim(left=0.0)
        ax.locator_params(axis="x", integer=True)
        ax.set_xlabel("entry of the ledger")
        ax.set_ylabel(f"epsilon (nats) at delta {plain(self.delta)}")
        style.legend(ax, colours)

    def _draw_bars(self, ax: "Axes", colours: style.Palette) -> None:
        parts = list(self.parts.items())
        if len(parts) > _MOST_BARS:
            rest = sum(value for _, value in parts[_MOST_BARS - 1 :])
            parts = [*parts[: _MOST_BARS - 1], (f"{len(parts) - _MOST_BARS + 1} others", rest)]
        left = max(self.epsilon - self.spent, 0.0)
        names = [style.shortened(name, 28) for name, _ in parts] + ["left"]
        values = [value for _, value in parts] + [left]
        faces = [colours.series[0]] * len(parts) + [colours.soft]
        places = list(range(len(names)))
        drawn = ax.barh(places, values, color=faces, height=0.65)
        labels = [*(most(value) for _, value in parts), least(left)]
        ax.bar_label(drawn, labels, padding=3, fontsize=style.SMALL, color=colours.ink)
        ax.set_yticks(places, names)
        ax.invert_yaxis()
        ax.grid(visible=False, axis="y")
        ax.set_xlim(0.0, 1.12 * max(*values, self.epsilon))
        ax.axvline(self.epsilon, color=colours.series[1], linestyle=style.DASHES[1], linewidth=1.4, label="budget")
        ax.set_xlabel(f"epsilon (nats) of {plain(self.epsilon)} at delta {plain(self.delta)}")
