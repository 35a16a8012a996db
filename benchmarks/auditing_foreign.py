"""Audits of other people's models: what bound against what truth, and noise that is too small by a factor of 4.

Each model is fitted many times on two tiny neighbouring tables, on which one row changes most of what it releases, and
what it releases is audited as a mechanism. Claims are those of the model's own parameters; the second audit has the
same claim and a quarter of the noise. diffprivlib and interpret run in an environment of their own.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import peers
from ledgerwood import Adjacency, Budget, GaussianEvent, PoissonSampled, Repeated, price
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.events import Event
from ledgerwood.verification import audit

Floats = NDArray[np.float64]
A, DELTA, EPSILON = Adjacency.ADD_REMOVE, 1e-5, 4.0
SEED = 70_000
REQUIREMENTS = ("numpy<2.3", "scikit-learn==1.5.2", "diffprivlib==0.6.6", "interpret-core==0.7.2", "joblib")
PAIR = (np.array([1.0]), np.array([0.0]))
"""With the canary, and without it: all that a sampler is told."""
STEPS, RATE = 10, 0.5
DRAWS = 40_000
FITS = {"naive Bayes": 600, "logistic regression": 2000, "random forest": 1000, "DP-EBM": 1000, "Opacus": 500}
"""Fits on each of the two tables."""


def table_sgd(multiplier: float, dataset: Floats, n: int, rng: np.random.Generator) -> Floats:
    """DP-SGD in numpy: one weight, squared loss, Poisson samples, gradients clipped to 1; n fits at once, all weights.

    The canary's label is 10, that of the only other row -10, so that both gradients stay at the clip.
    """
    weights, found = np.zeros(n), []
    for _ in range(STEPS):
        total = np.zeros(n)
        for label in (-10.0, 10.0)[: 1 + int(dataset[0])]:
            gradient = np.clip(2.0 * (weights - label), -1.0, 1.0)
            total += np.where(rng.random(n) < RATE, gradient, 0.0)
        weights = weights - 0.1 * (total + multiplier * rng.normal(size=n))
        found.append(weights)
    # Weights are rounded to a grid: what the noise's floats reveal is another question than how much noise there is.
    return np.round(np.column_stack(found) * 2.0**20) / 2.0**20


def opacus_fits(multiplier: float, n: int, title: str) -> dict[str, Any]:
    """DP-SGD by Opacus, all rows in each step, n fits on each table."""
    import torch
    from opacus import PrivacyEngine

    torch.set_num_threads(1)
    begun = time.perf_counter()
    found: dict[str, Any] = {"with": [], "without": []}
    for side, labels in (("with", [-10.0, 10.0]), ("without", [-10.0])):
        rows, targets = torch.ones(len(labels), 1), torch.tensor(labels).reshape(-1, 1)
        for _ in track(range(n), description=f"{title}, {side} the canary", transient=True):
            model = torch.nn.Linear(1, 1, bias=False)
            torch.nn.init.zeros_(model.weight)
            loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows, targets), batch_size=len(labels))
            private, optimizer, loader = PrivacyEngine().make_private(
                module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=loader,
                noise_multiplier=multiplier, max_grad_norm=1.0, poisson_sampling=False, loss_reduction="sum",
            )  # fmt: skip
            weights = []
            for _ in range(STEPS):
                for x, y in loader:
                    optimizer.zero_grad()
                    torch.nn.functional.mse_loss(private(x), y, reduction="sum").backward()
                    optimizer.step()
                weights.append(float(model.weight))
            found[side].append(weights)
    return found | {"seconds": time.perf_counter() - begun}


@dataclass(slots=True)
class Stored:
    """A sampler of fits that were made before: each is handed out once."""

    fits: dict[str, Any]
    used: dict[str, int] = field(default_factory=lambda: {"with": 0, "without": 0})

    def __call__(self, dataset: Floats, n: int, rng: np.random.Generator) -> Floats:
        side = "with" if dataset[0] else "without"
        at = self.used[side]
        self.used[side] = at + n
        values = np.array(self.fits[side][at : at + n], dtype=np.float64)
        assert len(values) == n, "more fits were asked for than were made"
        return np.round(values * 2.0**20) / 2.0**20


def less_noise(epsilon: float, delta: float) -> float:
    """The epsilon of a quarter of the noise: four times a pure one, or that of four times mu."""
    return 4.0 * epsilon if delta == 0.0 else gdp.epsilon(4.0 * gdp.mu(epsilon, delta), delta)


def drawn(fits: int) -> int:
    """The outputs of both tables that an audit may ask for: its coins may prefer one of them, 15 to 1, in the test."""
    return int(1.3 * fits)


def sgd_claim(multiplier: float, rate: float) -> Event:
    """The cost of the weights of all steps."""
    step = GaussianEvent(noise_multiplier=multiplier, adjacency=A)
    return Repeated(step if rate == 1.0 else PoissonSampled(step, sampling_rate=rate), count=STEPS)


def found(sampler: Callable[..., Any], claim: Any, most: int, before: float) -> dict[str, Any]:
    """One audit.

    Args:
        sampler: of what is released.
        claim: of the model.
        most: outputs of both tables.
        before: seconds of fits that were made before.
    """
    begun = time.perf_counter()
    result = audit(sampler, PAIR, claim=claim, alpha=0.05, max_draws=most, delta=DELTA, rng=SEED)
    return {
        "bound": result.epsilon_lower, "rejected": result.rejected, "assumption": result.assumption,
        "seconds": before + time.perf_counter() - begun,
    }  # fmt: skip


SGD = {"DP-SGD in numpy": (2.0, RATE), "DP-SGD by Opacus": (3.6, 1.0)}
"""Noise multiplier and sampling rate."""
PEERS = ("naive Bayes", "logistic regression", "random forest", "DP-EBM")


def foreign(console: Console, *, quick: bool, models: tuple[str, ...] = (*SGD, *PEERS)) -> dict[str, Any]:
    """The models, with their noise and with a quarter of it."""
    measured: dict[str, Any] = {}
    for name in (name for name in SGD if name in models):
        multiplier, rate = SGD[name]
        claim = sgd_claim(multiplier, rate)
        measured[name] = {"truth": price(claim).epsilon(DELTA), "delta": DELTA}
        for key, own in (("whole", multiplier), ("quarter", multiplier / 4.0)):
            if rate < 1.0:
                sampler, most, before = partial(table_sgd, own), DRAWS // (10 if quick else 1), 0.0
            else:
                fits = opacus_fits(own, FITS["Opacus"] // (5 if quick else 1), name)
                sampler, most, before = Stored(fits), drawn(len(fits["with"])), fits["seconds"]
            measured[name][key] = found(sampler, claim, most, before) | {"fits": most}
            console.print(f"{name}, {key}: {measured[name][key]}")
    for name in (name for name in PEERS if name in models):
        delta = DELTA if name == "DP-EBM" else 0.0
        # diffprivlib's counts by class add up to the exact number of rows: under add-remove its claim does not hold.
        adjacency = A if name == "random forest" else Adjacency.REPLACE_ONE
        claim = Budget(epsilon=EPSILON, delta=delta, adjacency=adjacency)
        measured[name] = {"truth": EPSILON, "delta": delta}
        for key, epsilon in (("whole", EPSILON), ("quarter", less_noise(EPSILON, delta))):
            n = FITS[name] // (5 if quick else 1)
            given = {"system": name, "epsilon": epsilon, "n": n, "seed": SEED}
            script = Path(__file__).with_name("auditing_foreign_peer.py")
            fits = peers.run("auditing-foreign", REQUIREMENTS, script, given)
            if fits is None:
                continue
            measured[name][key] = found(Stored(fits), claim, drawn(n), fits["seconds"]) | {"fits": drawn(n)}
            console.print(f"{name}, {key}: {measured[name][key]}")
    return measured


def print_foreign(measured: dict[str, Any], console: Console) -> None:
    """Bounds beside truths."""
    table = Table(title="Models of others, alpha .05: their own noise, and a quarter of it under the same claim")
    for column in ("model", "claim", "delta", "bound", "assumes", "fits", "s", "a quarter: bound", "refuted", "s"):
        table.add_column(column)
    for name, own in measured.items():
        if "quarter" not in own:
            continue
        whole, quarter = own["whole"], own["quarter"]
        bound = math.inf if quarter["bound"] is None else quarter["bound"]
        table.add_row(
            name, f"{own['truth']:.2f}", f"{own['delta']:g}", f"{whole['bound']:.2f}", whole["assumption"],
            str(whole["fits"]),
            f"{whole['seconds']:.0f}", f"{bound:.2f}", "yes" if quarter["rejected"] else "no",
            f"{quarter['seconds']:.0f}",
        )  # fmt: skip
    console.print(table)
