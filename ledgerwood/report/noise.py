"""Noise for a target and its cost: the steps of a training by its public size, and what is printed of them."""

import dataclasses
from dataclasses import dataclass
from typing import final

import typer

from ledgerwood.accounting import (
    Adjacency,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    Repeated,
    SGDPlan,
    sgd_plan,
)
from ledgerwood.accounting.sgd import GradientNoise, Sampling
from ledgerwood.cautions import suggested_delta
from ledgerwood.errors import InvalidParameter
from ledgerwood.report.printing import Fact

_PAGE = "how-to/noise-for-a-target"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisySteps:
    """The steps that a command's options describe: by rate and count, or as a plan by rows, batch size and epochs.

    Args:
        sampling_rate: probability that a step takes a row, in (0, 1]; 1 is no sample.
        count: number of steps.
        plan: the plan that rate and count come from, at any noise; None if they were given as they are.
    """

    sampling_rate: float
    count: int
    plan: SGDPlan | None = None

    @classmethod
    def of(
        cls,
        *,
        sampling_rate: float | None,
        steps: int | None,
        rows: int | None,
        batch_size: int | None,
        epochs: float | None,
        sampling: Sampling | None = None,
        adjacency: Adjacency | None = None,
        noise: GradientNoise = "gaussian",
    ) -> "NoisySteps":
        """The steps that the options of a command describe.

        Raises:
            typer.BadParameter: both ways at once, or half of the second one.
            InvalidParameter: a value outside its bound.
        """
        sizes = {"--rows": rows, "--batch-size": batch_size, "--epochs": epochs}
        absent = [name for name, value in sizes.items() if value is None]
        if len(absent) == len(sizes):
            if sampling is not None:
                raise typer.BadParameter(
                    f"--sampling {sampling} describes a training: give --rows, --batch-size and --epochs, too; "
                    "--sampling-rate and --steps are Poisson samples"
                )
            rate = 1.0 if sampling_rate is None else sampling_rate
            return cls(sampling_rate=rate, count=1 if steps is None else steps)
        both = [name for name, value in (("--sampling-rate", sampling_rate), ("--steps", steps)) if value is not None]
        if both:
            raise typer.BadParameter(
                f"{both[0]} is computed from --rows, --batch-size and --epochs: give these three, or --sampling-rate "
                "and --steps"
            )
        if rows is None or batch_size is None or epochs is None:
            raise typer.BadParameter(
                f"{' and '.join(absent)} must be given, too: --rows, --batch-size and --epochs together make the "
                "sampling rate and the number of steps"
            )
        plan = sgd_plan(
            rows=rows, batch_size=batch_size, epochs=epochs, noise_multiplier=1.0, sampling=sampling or "poisson",
            noise=noise, adjacency=adjacency,
        )  # fmt: skip
        return cls(sampling_rate=plan.sampling_rate, count=plan.steps, plan=plan)

    @property
    def rows(self) -> int | None:
        """The public number of rows, where it was given."""
        return None if self.plan is None else self.plan.rows

    @property
    def said(self) -> dict[str, Fact]:
        """How rate and count were computed, by name."""
        if self.plan is None:
            return {}
        return {
            "rows": self.plan.rows,
            "batch_size": self.plan.batch_size,
            "epochs": self.plan.epochs,
            "sampling": self.plan.sampling,
            "computed": self.plan.rounding,
        }

    def relation(self, given: Adjacency | None) -> Adjacency:
        """Which data sets are neighbours: as was said, or else as the sampler is usually stated."""
        if given is not None:
            return given
        return Adjacency.ADD_REMOVE if self.plan is None else self.plan.adjacency

    def multiplier_is(self, adjacency: Adjacency) -> dict[str, Fact]:
        """What the noise multiplier is a multiple of, where that is in doubt: under replace-one."""
        if adjacency is not Adjacency.REPLACE_ONE:
            return {}
        unit = (
            "the sensitivity, which under replace-one is twice the clipping norm of a row"
            if self.plan is None
            else "the clipping norm of a row; under replace-one the sensitivity is twice that"
        )
        return {"multiplier_is": f"noise over {unit}"}

    def event(self, noise: GradientNoise, multiplier: float, adjacency: Adjacency) -> Event:
        """The steps as one event, for a noise multiplier."""
        if self.plan is not None:
            return dataclasses.replace(self.plan, noise=noise, noise_multiplier=multiplier, adjacency=adjacency).event
        if adjacency is Adjacency.REPLACE_ONE and self.sampling_rate != 1.0:
            raise InvalidParameter(
                f"adjacency={adjacency.value!r} has no bound here for steps on Poisson samples (a sampling rate of "
                f"{self.sampling_rate:.6g}), whose cost of a row's presence is not given: describe a training by "
                "--rows, --batch-size and --epochs, take --adjacency add-remove, or from Python "
                "ledgerwood.ReplaceOneSampled",
                parameter="adjacency",
            )
        event: Event
        match noise:
            case "gaussian":
                event = GaussianEvent(noise_multiplier=multiplier, adjacency=adjacency)
            case "laplace":
                event = LaplaceEvent(noise_multiplier=multiplier, adjacency=adjacency)
        if self.sampling_rate != 1.0:  # a full batch is not a sample: it stays exact, and under replace-one too
            event = PoissonSampled(event, sampling_rate=self.sampling_rate)
        return Repeated(event, count=self.count)

    @property
    def sampler(self) -> str:
        """Which way of making batches the figures are for, in words."""
        if self.plan is not None:
            return self.plan.sampler if self.plan.whole else f"{self.plan.sampler}. {self.plan.shuffled}"
        if self.sampling_rate == 1.0:
            return "none: every step sees all rows"
        return (
            f"Poisson: each step takes each row with probability {self.sampling_rate:.6g}, independently, so that "
            "batches differ in size. A loader that shuffles the rows, or makes batches of one size, is another "
            f"mechanism, and these figures do not hold for it: {_PAGE} in the manual says what to do"
        )

    def delta(self, given: float | None) -> tuple[float, dict[str, Fact]]:
        """The delta that was given, or the one that suits the public number of rows, and what is said of it.

        Raises:
            typer.BadParameter: neither delta nor rows.
        """
        if given is not None:
            return given, {}
        if self.rows is None:
            raise typer.BadParameter(
                "give --delta, a probability far below 1 / (number of rows), as 1e-6; it is suggested where --rows, "
                "--batch-size and --epochs are given"
            )
        found = suggested_delta(self.rows)
        why = (
            f"{found:g} was chosen for you: a power of ten, at most 1 / (100 x {self.rows}), the number of rows that "
            "you gave and that counts as public. Set another one with --delta"
        )
        return found, {"delta_is": why}


def require_one_unknown(epsilon: float | None, delta: float | None, steps: NoisySteps) -> None:
    """Refuse a price of two unknowns, or of none.

    Raises:
        typer.BadParameter: so it is.
    """
    if epsilon is not None and delta is not None:
        raise typer.BadParameter(
            "give one of --delta and --epsilon, the other one is the answer; whether noise keeps both is what "
            "`ledgerwood sigma` finds"
        )
    if epsilon is None and delta is None and steps.rows is None:
        raise typer.BadParameter(
            "give --delta to get epsilon (a probability far below 1 / (number of rows), as 1e-6), or --epsilon to get "
            "delta"
        )
