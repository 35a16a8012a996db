"""The messages that a plan would send between a server and its clients, counted from its structure alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ledgerwood.ensemble import FeatureCells
from ledgerwood.trainers.federated.candidates import CALIBRATION_BINS

if TYPE_CHECKING:
    from ledgerwood.trainers.federated.plan import FederatedPlan

WORD_BYTES = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Communication:
    """Rounds, and 64-bit words of sums up and of structure, thresholds and leaf values down; without any encryption.

    Args:
        rounds: of one answer of each client, where the trees of a batch are asked for together;
            `ledgerwood.federation` asks for one tree after another.
        words_up: of one client, in all rounds.
        words_down: to one client, in all rounds.
        n_clients: how many take part.
    """

    rounds: int
    words_up: int
    words_down: int
    n_clients: int

    @property
    def bytes_up(self) -> float:
        """Bytes from one client in a round, on average."""
        return WORD_BYTES * self.words_up / self.rounds

    @property
    def bytes_down(self) -> float:
        """To one client in a round, on average."""
        return WORD_BYTES * self.words_down / self.rounds

    @property
    def bytes_in_all(self) -> int:
        """Up and down, of all clients, in all rounds."""
        return WORD_BYTES * (self.words_up + self.words_down) * self.n_clients


def bins_of(cells: Sequence[FeatureCells], candidates: int) -> list[int]:
    """Number of bins of each feature, where each has at most `candidates` thresholds; largest first."""
    ordered = (min(candidates + 1, each.ordered) for each in cells)
    own = (n + len(each.equality) + (each.ordered == 0) for n, each in zip(ordered, cells, strict=True))
    return sorted(own, reverse=True)


def communication_of(plan: "FederatedPlan", cells: Sequence[FeatureCells], *, n_clients: int) -> Communication:
    """Counts the messages of a plan. Arguments: those of `FederatedPlan.communication`."""
    n_bins = bins_of(cells, plan.n_candidates)
    nodes = 2**plan.max_depth - 1
    if plan.asks_leaves:
        sums, levels = 2 * (nodes + 1), 1
    elif plan.split_method == "histogram":
        sums, levels = 2 * sum(n_bins[: plan.width]) * (1 if plan.width == 1 else nodes), len(plan.method.asked(plan))
    else:
        sums, levels = 2 * (plan.width * nodes + 1), plan.max_depth + 1
    refined = [plan.refined_features(tree) for tree in range(plan.n_estimators)]
    asked_of = n_bins
    if not plan.drawn_features:
        asked_of = bins_of([cells[place] for place in plan.numeric_features], plan.n_candidates)
    up = plan.n_estimators * sums + sum(sum(asked_of[:features]) for features in refined)
    up += 2 * CALIBRATION_BINS if plan.recalibrate else 0
    # A test is a feature and a cell; candidates go down where sums to their left come up; leaves at the end.
    asked = plan.width * nodes if plan.split_method == "partially_random" else nodes
    by_root = plan.split_method == "histogram"
    fresh = sum(plan.width if by_root and plan.refined(t) else refined[t] for t in range(plan.n_estimators))
    down = plan.n_estimators * (2 * asked + nodes + 1) + fresh * plan.n_candidates
    down += CALIBRATION_BINS if plan.recalibrate else 0
    size = plan.n_estimators if plan.update == "averaging" else plan.trees_per_batch
    # Refined candidates are needed before the next tree is drawn, or its root's histograms are asked for.
    waits = sum(by_root and plan.refined(t) and (t + 1) % size > 0 for t in range(plan.n_estimators - 1))
    rounds = (
        -(-plan.n_estimators // size) * levels + waits + sum(features > 0 for features in refined) + plan.recalibrate
    )
    rounds += plan.initial_score == "moments"
    up = plan.classes * up + (2 if plan.initial_score == "moments" else 0)
    return Communication(rounds=rounds, words_up=up, words_down=plan.classes * down, n_clients=n_clients)
