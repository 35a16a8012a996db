"""What a demonstration found, as values, as a small plot for a terminal, and as a page."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import final

from ledgerwood import __version__
from ledgerwood.accounting import Adjacency, Budget
from ledgerwood.accounting.risk import in_words
from ledgerwood.datasets import DatasetName
from ledgerwood.pages.html import Figure, HtmlTable, Page, Section
from ledgerwood.pages.svg import Axis, PlotCurve, padded, plot
from ledgerwood.pages.values import plain

FEW_ROWS = 10_000
WIDTH = 40
"""Characters of a bar in a terminal."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityPoint:
    """One private model of the picture: its epsilon in nats, and its score on the test rows."""

    epsilon: float
    score: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The result of one demonstration.

    Args:
        dataset: name of the data set.
        train_rows, test_rows: rows of each part (public here: the data set is).
        scores: for each measure the private, the non-private and the trivial model's score on the test rows.
        epsilon_planned: privacy cost of the plan before training, nats.
        epsilon_readded: total of the ledger file, recomputed by the verifier, nats.
        delta: probability.
        adjacency: the relation.
        trees: number of trees.
        seconds: the seconds of the private training.
        ledger: the ledger file.
        utility: one private model for each epsilon, in rising order, by accuracy or R2.
        page: the HTML file with all of this.
    """

    dataset: DatasetName
    train_rows: int
    test_rows: int
    scores: dict[str, tuple[float, float, float]]
    epsilon_planned: float
    epsilon_readded: float
    delta: float
    adjacency: Adjacency
    trees: int
    seconds: float
    ledger: Path
    utility: tuple[UtilityPoint, ...]
    page: Path

    @property
    def measure(self) -> str:
        """The measure of `utility`; more is better."""
        return "accuracy" if "accuracy" in self.scores else "R2"

    @property
    def goal(self) -> float:
        """The score without privacy."""
        return self.scores[self.measure][1]

    @property
    def trivial(self) -> float:
        """The score of one answer for all."""
        return self.scores[self.measure][2]

    @property
    def remark(self) -> str:
        """Why the private model stands where it stands."""
        size = (
            "are few, so the noise reduces the accuracy; with a hundred times as many rows it would hardly matter."
            if self.train_rows < FEW_ROWS
            else "are many, so the noise costs little."
        )
        return (
            "Why the gap: the noise on a leaf depends on epsilon, delta and the number of trees, not on the number of "
            f"rows, while the signal grows with the rows. {self.train_rows:,} training rows {size}"
        )

    def to_record(self) -> dict[str, object]:
        """Plain JSON values."""
        return {
            "dataset": self.dataset,
            "train_rows": self.train_rows,
            "test_rows": self.test_rows,
            "scores": {
                measure: dict(zip(("private", "non_private", "trivial"), values, strict=True))
                for measure, values in self.scores.items()
            },
            "epsilon_planned": self.epsilon_planned,
            "epsilon_readded": self.epsilon_readded,
            "delta": self.delta,
            "adjacency": self.adjacency.value,
            "trees": self.trees,
            "seconds": self.seconds,
            "ledger": str(self.ledger),
            "utility": [asdict(point) for point in self.utility],
            "page": str(self.page),
        }


def text_plot(result: DemoResult, *, blocks: bool = True) -> str:
    """Utility over epsilon as bars: none at the trivial score or below it, full at the score without privacy.

    Args:
        result: what was found.
        blocks: whether the terminal can show other characters than those of ASCII.
    """
    rows = [
        ("one answer for all", result.trivial),
        *((f"epsilon {point.epsilon:g}", point.score) for point in result.utility),
        ("without privacy", result.goal),
    ]
    mark, rest = ("\N{FULL BLOCK}", "\N{MIDDLE DOT}") if blocks else ("#", ".")
    way = (result.goal - result.trivial) or 1.0
    lines = [f"{result.measure} on the test rows, one model for each epsilon (less is more private)"]
    for name, score in rows:
        full = round(WIDTH * min(1.0, max(0.0, (score - result.trivial) / way)))
        bar = mark * full + rest * (WIDTH - full)
        lines.append(f"{name:>20}  {bar}  {score:.3f}")
    return "\n".join(lines)


def demo_page(result: DemoResult) -> Page:
    """The page of a demonstration."""
    private, plainly, trivial = result.scores[result.measure]
    epsilon, delta = plain(result.epsilon_planned), plain(result.delta)
    budget = Budget(epsilon=result.epsilon_planned, delta=result.delta, adjacency=result.adjacency)
    return Page(
        kind="Demonstration",
        title=f"A private model of {result.dataset.replace('_', ' ')}",
        tone="good",
        verdict=f"{result.measure} {private:.3f} at epsilon {epsilon}",
        sentence=f"Without privacy {plainly:.3f}, with one answer for all {trivial:.3f}. The ledger was recomputed by "
        f"a second implementation: epsilon {plain(result.epsilon_readded)}.",
        facts=(
            ("training rows", f"{result.train_rows:,}"),
            ("test rows", f"{result.test_rows:,}"),
            ("trees", f"{result.trees:,}"),
            ("seconds to train", f"{result.seconds:.1f}"),
        ),
        sections=(
            Section(
                title="Utility over epsilon",
                texts=(result.remark,),
                figures=(_utility(result),),
            ),
            Section(
                title="What the epsilon means",
                texts=(in_words(budget),),
            ),
            Section(
                title="Check it",
                facts=(
                    ("recompute the ledger", f"ledgerwood ledger verify {result.ledger}"),
                    ("adjacency", result.adjacency.value),
                    ("delta", delta),
                ),
            ),
        ),
        footer=f"Written by ledgerwood {__version__}. The rows are public. With private rows, each of these models "
        "would be paid for, and their epsilons would add up.",
        record=result.to_record(),
    )


def _utility(result: DemoResult) -> Figure:
    epsilons = [point.epsilon for point in result.utility]
    scores = [point.score for point in result.utility]
    low, high = padded([*scores, result.goal, result.trivial])
    ends = [epsilons[0], epsilons[-1]]
    drawing = plot(
        "utility",
        "Utility over epsilon",
        f"{result.measure} of one private model for each epsilon: "
        + ", ".join(f"{score:.3f} at {epsilon:g}" for epsilon, score in zip(epsilons, scores, strict=True))
        + f"; without privacy {result.goal:.3f}, one answer for all {result.trivial:.3f}.",
        Axis(label="epsilon (less is more private)", low=epsilons[0], high=epsilons[-1], log=True),
        Axis(label=f"{result.measure} on the test rows", low=low, high=high),
        [
            PlotCurve(xs=ends, ys=[result.trivial] * 2, role="chance"),
            PlotCurve(xs=ends, ys=[result.goal] * 2, role="claimed"),
            PlotCurve(xs=epsilons, ys=scores, role="found"),
        ],
    )
    return Figure(
        drawing=drawing,
        caption="What a smaller epsilon costs",
        legend=(
            ("found", "private, one model for each epsilon", False),
            ("claimed", "without privacy (scikit-learn)", False),
            ("chance", "one answer for all", False),
        ),
        note="Each model drew new noise, so that a curve over few test rows need not rise at each step.",
        table=HtmlTable(
            header=("epsilon", result.measure),
            rows=tuple((f"{e:g}", f"{s:.3f}") for e, s in zip(epsilons, scores, strict=True)),
            numbers=frozenset({0, 1}),
        ),
        whole=True,
    )
