"""The random allocations that are measured: a step's noise, the steps, those of a unit, the passes, and the delta."""

from dataclasses import dataclass
from typing import Literal

import ledgerwood as lw

A = lw.Adjacency.ADD_REMOVE


@dataclass(frozen=True, kw_only=True)
class Case:
    """An allocation of noisy sums, and the delta of its privacy cost."""

    multiplier: float
    steps: int
    selected: int = 1
    epochs: int = 1
    delta: float = 1e-5
    noise: Literal["gaussian", "laplace"] = "gaussian"

    def step(self) -> lw.Event:
        """One step's release, from all rows."""
        kind = lw.GaussianEvent if self.noise == "gaussian" else lw.LaplaceEvent
        return kind(noise_multiplier=self.multiplier, adjacency=A)

    def plan(self) -> lw.Event:
        """All passes."""
        one = lw.RandomAllocation(self.step(), selected=self.selected, steps=self.steps)
        return lw.Repeated(one, count=self.epochs)

    def sampled(self) -> lw.Event:
        """Poisson samples of the same rate, as often."""
        sample = lw.PoissonSampled(self.step(), sampling_rate=self.selected / self.steps)
        return lw.Repeated(sample, count=self.steps * self.epochs)

    def named(self) -> tuple[str, ...]:
        """The first cells of a row: noise, multiplier, k of t, passes, delta."""
        steps = f"{self.selected} of {self.steps:,}"
        return self.noise, f"{self.multiplier:g}", steps, f"{self.epochs:,}", f"{self.delta:.0e}"


CASES = (
    Case(multiplier=1.0, steps=100),
    Case(multiplier=0.5, steps=100),
    Case(multiplier=1.0, steps=1000),
    Case(multiplier=1.0, steps=1000, epochs=10),
    Case(multiplier=0.3, steps=10_000, delta=1e-12),
    Case(multiplier=10.0, steps=100, epochs=100, delta=1e-3),
    Case(multiplier=1.0, steps=1_000_000),
    Case(multiplier=0.5, steps=999_983, delta=1e-8),
    Case(multiplier=1.0, steps=1_000_000, epochs=1000),
    Case(multiplier=1.0, steps=100, selected=2),
    Case(multiplier=1.0, steps=1000, selected=10),
    Case(multiplier=2.0, steps=10_000, selected=100, delta=1e-6),
    Case(multiplier=1.0, steps=100, noise="laplace"),
    Case(multiplier=0.5, steps=1000, noise="laplace", delta=1e-8),
    Case(multiplier=2.0, steps=1_000_000, noise="laplace", delta=1e-6),
    Case(multiplier=1.0, steps=1000, epochs=10, noise="laplace"),
)
