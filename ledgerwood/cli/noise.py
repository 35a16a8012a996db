"""`ledgerwood sigma` and `ledgerwood price`: noise for a target, and the privacy cost of noise."""

from typing import Annotated

import typer

from ledgerwood.accounting import Budget, Event
from ledgerwood.cautions import delta_caution, emit
from ledgerwood.report.options import (
    Batches,
    BatchSize,
    Epochs,
    Epsilon,
    Json,
    Kind,
    OptionalDelta,
    RowCount,
    SamplingRate,
    StepCount,
    StepsRelation,
    Way,
)
from ledgerwood.report.printing import Fact, refusals, show
from ledgerwood.report.progress import working


@refusals
def sigma(
    epsilon: Epsilon,
    delta: OptionalDelta = None,
    rows: RowCount = None,
    batch_size: BatchSize = None,
    epochs: Epochs = None,
    sampling_rate: SamplingRate = None,
    steps: StepCount = None,
    sampling: Batches = None,
    adjacency: StepsRelation = None,
    noise: Kind = "gaussian",
    method: Way = "tightest",
    as_json: Json = False,
) -> None:
    """Compute the least noise multiplier that keeps a training's steps within (epsilon, delta).

    Describe the steps by --rows, --batch-size and --epochs, or by --sampling-rate and --steps. A noise multiplier is
    the noise's standard deviation (or Laplace scale) over the clipping norm of a row's gradient. The figures are for
    one way of making batches, which --sampling says.

    Examples:
        ledgerwood sigma --epsilon 2 --rows 60000 --batch-size 256 --epochs 15
        ledgerwood sigma --epsilon 2 --rows 60000 --batch-size 256 --epochs 15 --sampling fixed
        ledgerwood sigma --epsilon 1 --delta 1e-5 --sampling-rate 0.01 --steps 10000
        ledgerwood sigma --epsilon 1 --delta 1e-5 --json
    """
    from ledgerwood.accounting import calibrate, price, risk
    from ledgerwood.report.noise import NoisySteps

    told = NoisySteps.of(
        sampling_rate=sampling_rate, steps=steps, rows=rows, batch_size=batch_size, epochs=epochs, sampling=sampling,
        adjacency=adjacency, noise=noise,
    )  # fmt: skip
    relation = told.relation(adjacency)
    delta, chosen = told.delta(delta)
    budget = Budget(epsilon=epsilon, delta=delta, adjacency=relation)
    emit([delta_caution(delta, rows)])

    def plan(multiplier: float) -> Event:
        return told.event(noise, multiplier, relation)

    with working("looking for the least noise"):
        multiplier = calibrate(plan, budget, method=method)
        quote = price(plan(multiplier), method=method).quote(delta)
    show(
        "least noise",
        {
            "noise_multiplier": multiplier,
            "epsilon": quote.epsilon,
            "delta": delta,
            **chosen,
            "adjacency": relation.value,
            "noise": noise,
            **told.multiplier_is(relation),
            **told.said,
            "sampling_rate": told.sampling_rate,
            "steps": told.count,
            "sampler": told.sampler,
            "risk": risk.in_words(budget),
            "method": quote.method,
            "certified": quote.certified,
        },
        as_json=as_json,
    )


@refusals
def price(
    noise_multiplier: Annotated[
        float, typer.Option(help="Noise standard deviation (or Laplace scale) / sensitivity, > 0.")
    ],
    delta: Annotated[
        float | None, typer.Option(help="Give delta to get epsilon; suggested where --rows is given.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Give epsilon to get delta.")] = None,
    rows: RowCount = None,
    batch_size: BatchSize = None,
    epochs: Epochs = None,
    sampling_rate: SamplingRate = None,
    steps: StepCount = None,
    sampling: Batches = None,
    adjacency: StepsRelation = None,
    noise: Kind = "gaussian",
    method: Way = "tightest",
    false_positive_rate: Annotated[
        float | None, typer.Option(help="Also bound an attacker with this false positive rate.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also explain the method and the meaning of the result.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compute the privacy cost of a training's steps: epsilon at a delta, or delta at an epsilon.

    Describe the steps by --rows, --batch-size and --epochs, or by --sampling-rate and --steps. The figures are for one
    way of making batches, which --sampling says.

    Examples:
        ledgerwood price --noise-multiplier 1.1 --rows 60000 --batch-size 256 --epochs 15
        ledgerwood price --noise-multiplier 1.1 --delta 1e-5 --sampling-rate 0.01 --steps 1000 --explain
        ledgerwood price --noise laplace --noise-multiplier 4 --epsilon 0.5 --json
    """
    from ledgerwood.accounting import price as price_event
    from ledgerwood.accounting import risk
    from ledgerwood.report.noise import NoisySteps, require_one_unknown

    told = NoisySteps.of(
        sampling_rate=sampling_rate, steps=steps, rows=rows, batch_size=batch_size, epochs=epochs, sampling=sampling,
        adjacency=adjacency, noise=noise,
    )  # fmt: skip
    relation = told.relation(adjacency)
    require_one_unknown(epsilon, delta, told)
    chosen: dict[str, Fact] = {}
    with working("computing the privacy cost"):
        priced = price_event(told.event(noise, noise_multiplier, relation), method=method)
        if epsilon is None:
            delta, chosen = told.delta(delta)
            epsilon = priced.epsilon(delta)
            emit([delta_caution(delta, rows)])
        else:
            delta = priced.delta(epsilon)
        facts: dict[str, Fact] = {
            "epsilon": epsilon,
            "delta": delta,
            **chosen,
            "noise_multiplier": noise_multiplier,
            "adjacency": relation.value,
            "noise": noise,
            **told.multiplier_is(relation),
            **told.said,
            "sampling_rate": told.sampling_rate,
            "steps": told.count,
            "sampler": told.sampler,
            "risk": risk.in_words(epsilon, delta, adjacency=relation),
            "method": priced.method,
            "certified": priced.certified,
        }
        if false_positive_rate is not None:
            facts["advantage"] = risk.advantage(priced)
            facts["false_positive_rate"] = false_positive_rate
            facts["true_positive_rate"] = risk.true_positive_rate(priced, false_positive_rate)
            facts["belief_at_even_odds"] = risk.belief(priced, 0.5, false_positive_rate)
        if explain:
            facts["explanation"] = priced.explain(delta or None)
    show("price", facts, as_json=as_json)
