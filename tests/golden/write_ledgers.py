"""Write the golden ledgers that do not exist yet: `python tests/golden/write_ledgers.py`.

A file that exists is never written again: each one must verify for ever, with the head that its test names.
"""

from pathlib import Path

from ledgerwood.accounting import (
    Adjacency,
    AdvancedCompositionFilter,
    ApproximateEvent,
    BasicFilter,
    BoundedRangeEvent,
    Budget,
    Composed,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    Event,
    Filter,
    FilteredEvent,
    FixedSizeSampled,
    GaussianEvent,
    GaussianMixtureEvent,
    GDPEvent,
    GDPFilter,
    LaplaceEvent,
    Ledger,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    PrivacyUnit,
    ProfileEvent,
    PureEvent,
    RandomAllocation,
    RandomizedResponseEvent,
    RenyiEvent,
    RenyiFilter,
    Repeated,
    RepeatedSelection,
    ReplaceOneSampled,
    SkellamEvent,
    SkellamVectorEvent,
    StaircaseEvent,
    TruncatedLaplaceEvent,
    ZCDPFilter,
    ZeroConcentratedEvent,
    calibrate,
    user_sampled,
)
from ledgerwood.federation.owners.account import ClientAccount
from ledgerwood.federation.owners.account_terms import SessionTerms
from ledgerwood.secure_aggregation import SumAnswer, members_digest

FOLDER = Path(__file__).parent
A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)


def gaussian(multiplier: float) -> GaussianEvent:
    """Normal noise under add-remove."""
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def laplace(multiplier: float) -> LaplaceEvent:
    """Laplace noise under add-remove."""
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


def open_ledger(name: str, budget: Budget, filter_: Filter, unit: PrivacyUnit = PrivacyUnit.ROW) -> Ledger | None:
    """A new golden file, or None where it exists."""
    path = FOLDER / f"{name}.ledger.jsonl"
    return None if path.exists() else Ledger.open(path, dataset="golden", budget=budget, unit=unit, filter=filter_)


def draw_all(ledger: Ledger, plan: Event, purpose: str, delta: float | None = None) -> None:
    """Grant a plan and draw all of it."""
    grant = ledger.grant(plan, purpose=purpose, delta=delta)
    for event, count in grant.remaining.items():
        for number in range(count):
            grant.draw(event, purpose=f"{purpose}, {number + 1}")


def full_batch() -> None:
    """A full-batch Gaussian plan, calibrated to its whole budget."""
    ledger = open_ledger("full-batch", BUDGET, BasicFilter())
    if ledger is None:
        return

    def plan(scale: float) -> Event:
        score = EllipticalGaussianEvent(sensitivities=(1.0, 0.5), stddevs=(4.0 * scale, 2.0 * scale), adjacency=A)
        return Composed((score, Repeated(gaussian(scale), count=5)))

    draw_all(ledger, plan(calibrate(plan, BUDGET)), "trees")


def sampled_and_laplace() -> None:
    """Sampled Gaussian, Laplace, pure and parallel parts on one ledger, some of them not drawn."""
    ledger = open_ledger(
        "sampled-and-laplace", Budget(epsilon=6.0, delta=1e-5, adjacency=A), BasicFilter(), PrivacyUnit.USER
    )
    if ledger is None:
        return
    ledger.grant(PureEvent(epsilon=0.125, adjacency=A), purpose="quantiles").draw(
        PureEvent(epsilon=0.125, adjacency=A), purpose="median"
    )
    step = PoissonSampled(gaussian(1.5), sampling_rate=0.02)
    plan = Composed((laplace(10.0), Repeated(step, count=50), PoissonSampled(laplace(2.0), sampling_rate=0.1)))
    grant = ledger.grant(plan, purpose="train", delta=4e-6)
    grant.draw(laplace(10.0), purpose="initial score")
    for number in range(3):
        grant.draw(step, purpose=f"step {number + 1}")
    groups = Parallel((gaussian(4.0), laplace(3.0)), probabilities=(0.25, 0.5))
    ledger.grant(PoissonSampled(groups, sampling_rate=0.2), purpose="groups", delta=1e-6)
    ledger.grant(Parallel.worst((laplace(4.0), laplace(5.0))), purpose="worst group")
    ledger.grant(Repeated(laplace(20.0), count=2), purpose="two means", delta=1e-6)


def gdp_filter() -> None:
    """Two adaptively chosen Gaussian plans under the Gaussian-DP filter."""
    ledger = open_ledger("gdp-filter", BUDGET, GDPFilter())
    if ledger is None:
        return
    draw_all(ledger, Repeated(gaussian(10.0), count=3), "first")
    draw_all(ledger, Parallel.worst((gaussian(6.0), gaussian(7.0))), "second")


def reproducible_randomness() -> None:
    """A plan whose second draw used reproducible noise, under replace-one."""
    budget = Budget(epsilon=2.0, delta=1e-6, adjacency=Adjacency.REPLACE_ONE)
    ledger = open_ledger("test-randomness", budget, BasicFilter())
    if ledger is None:
        return
    event = GaussianEvent(noise_multiplier=8.0, adjacency=Adjacency.REPLACE_ONE)
    grant = ledger.grant(Repeated(event, count=2), purpose="train")
    grant.draw(event, purpose="secure")
    grant.draw(event, purpose="reproducible", randomness="test")


def bounded_range() -> None:
    """Selections with an exponential mechanism: alone, many, and on samples."""
    ledger = open_ledger("bounded-range", Budget(epsilon=15.0, delta=1e-5, adjacency=A), BasicFilter())
    if ledger is None:
        return
    selection = BoundedRangeEvent(epsilon=0.1, adjacency=A)
    ledger.grant(selection, purpose="one split").draw(selection, purpose="split")
    ledger.grant(Repeated(selection, count=1000), purpose="splits", delta=1e-6).draw(selection, purpose="split 1")
    sampled = PoissonSampled(BoundedRangeEvent(epsilon=1.0, adjacency=A), sampling_rate=0.05)
    ledger.grant(sampled, purpose="one sampled split", delta=1e-6)
    ledger.grant(Composed((Repeated(sampled, count=40), gaussian(8.0))), purpose="sampled splits", delta=4e-6)


def stated() -> None:
    """Guarantees that somebody else has proven: each alone, composed, sampled and in groups, as far as it goes."""
    ledger = open_ledger("stated", Budget(epsilon=30.0, delta=1e-4, adjacency=A), BasicFilter())
    if ledger is None:
        return
    table = ProfileEvent(epsilons=(0.0, 0.25, 0.5, 1.0), deltas=(0.25, 0.125, 0.0625, 0.0), adjacency=A)
    rough = ApproximateEvent(epsilon=0.5, delta=1e-7, adjacency=A)
    curve = RenyiEvent(orders=(1.5, 2.0, 8.0, 32.0), divergences=(0.01, 0.02, 0.0625, 0.25), adjacency=A)
    concentrated = ZeroConcentratedEvent(rho=0.01, adjacency=A)
    known = GDPEvent(mu=0.25, adjacency=A)
    ledger.grant(rough, purpose="a stated point", delta=1e-6).draw(rough, purpose="release")
    ledger.grant(PoissonSampled(rough, sampling_rate=0.1), purpose="its sample", delta=1e-6)
    ledger.grant(Repeated(concentrated, count=5), purpose="concentrated", delta=1e-6)
    ledger.grant(Composed((curve, concentrated, Repeated(known, count=3))), purpose="a mixed plan", delta=1e-6)
    ledger.grant(Repeated(known, count=4), purpose="Gaussian pairs", delta=1e-6)
    ledger.grant(PoissonSampled(known, sampling_rate=0.25), purpose="a sampled Gaussian pair", delta=1e-6)
    ledger.grant(table, purpose="a table", delta=1e-6)
    ledger.grant(Repeated(PoissonSampled(table, sampling_rate=0.125), count=6), purpose="sampled tables", delta=1e-6)
    groups = Parallel((rough, known, table), probabilities=(0.25, 0.25, 0.5))
    ledger.grant(groups, purpose="groups", delta=1e-6)


def randomised_response() -> None:
    """Answers of rows under replace-one, and one plan of many."""
    R = Adjacency.REPLACE_ONE
    ledger = open_ledger("randomised-response", Budget(epsilon=8.0, delta=1e-5, adjacency=R), BasicFilter())
    if ledger is None:
        return
    colour = RandomizedResponseEvent(epsilon=0.5, categories=7, adjacency=R)
    yes = RandomizedResponseEvent(epsilon=0.125, categories=2, adjacency=R)
    ledger.grant(colour, purpose="colour").draw(colour, purpose="answers")
    ledger.grant(colour, purpose="colour again", delta=1e-6)
    ledger.grant(Composed((colour, Repeated(yes, count=64))), purpose="a questionnaire", delta=2e-6)


def integers() -> None:
    """Integer noise on whole numbers: alone, many, and on samples."""
    ledger = open_ledger("integers", Budget(epsilon=20.0, delta=1e-5, adjacency=A), BasicFilter())
    if ledger is None:
        return
    laplace_ = DiscreteLaplaceEvent(scale=8.0, sensitivity=3, adjacency=A)
    normal = DiscreteGaussianEvent(scale=1.5, sensitivity=1, adjacency=A)
    ledger.grant(laplace_, purpose="a count").draw(laplace_, purpose="count")
    ledger.grant(normal, purpose="another count", delta=1e-6).draw(normal, purpose="count")
    ledger.grant(Composed((Repeated(normal, count=3), Repeated(laplace_, count=2))), purpose="counts", delta=1e-6)
    ledger.grant(PoissonSampled(laplace_, sampling_rate=0.125), purpose="a sampled count", delta=1e-6)
    steps = Repeated(PoissonSampled(normal, sampling_rate=0.0625), count=20)
    ledger.grant(steps, purpose="sampled counts", delta=1e-6)


def analysts() -> None:
    """Format version 2: two analysts with a share each."""
    path = FOLDER / "analysts.ledger.jsonl"
    if path.exists():
        return
    shares = {"ada": 0.6, "ben": 0.4}
    for name, multiplier in (("ada", 12.0), ("ben", 16.0)):
        with Ledger.open(
            path, dataset="golden", budget=BUDGET, unit=PrivacyUnit.ROW, analysts=shares, analyst=name
        ) as ledger:
            draw_all(ledger, Repeated(gaussian(multiplier), count=2), f"means of {name}")


def migrated() -> None:
    """Format version 1, then 2: opened for anyone, later shared by two analysts, with a purse from before."""
    ledger = open_ledger("migrated", BUDGET, BasicFilter())
    if ledger is None:
        return
    with ledger:
        before = ledger.grant(Repeated(gaussian(32.0), count=2), purpose="means of anyone", delta=2e-6)
        before.draw(gaussian(32.0), purpose="means of anyone, 1")
        ledger.migrate(analysts={"ada": 0.5, "ben": 0.25}, analyst="ada")
        before.draw(gaussian(32.0), purpose="means of anyone, 2")
        draw_all(ledger, Repeated(laplace(20.0), count=3), "medians of ada")
    with Ledger.open(FOLDER / "migrated.ledger.jsonl", analyst="ben") as ledger:
        draw_all(ledger, Repeated(gaussian(64.0), count=2), "means of ben")


def checkpointed() -> None:
    """Format version 2, then 4: a checkpoint with two analysts, a grant that is half drawn and one that is not."""
    terms = Budget(epsilon=2.0, delta=1e-5, adjacency=A)
    ledger = open_ledger("checkpointed", terms, ZCDPFilter())
    if ledger is None:
        return
    with ledger:
        before = ledger.grant(Repeated(gaussian(32.0), count=2), purpose="means of anyone")
        ledger.migrate(analysts={"ada": 0.5, "ben": 0.25}, analyst="ada")
        draw_all(ledger, Repeated(laplace(20.0), count=2), "medians of ada")
        ledger.grant(gaussian(48.0), purpose="a later process's", resumable=True)
        before.draw(gaussian(32.0), purpose="means of anyone, 1")
        ledger.checkpoint()
        before.draw(gaussian(32.0), purpose="means of anyone, 2")
    with Ledger.open(FOLDER / "checkpointed.ledger.jsonl", analyst="ben", from_checkpoint=True) as ledger:
        draw_all(ledger, Repeated(gaussian(64.0), count=2), "means of ben")
        ledger.checkpoint()


def cut_and_stepped() -> None:
    """Skellam, staircase and truncated Laplace noise: alone, many, and on samples."""
    ledger = open_ledger("cut-and-stepped", Budget(epsilon=30.0, delta=1e-4, adjacency=A), BasicFilter())
    if ledger is None:
        return
    count = SkellamEvent(variance=20.0, sensitivity=1, adjacency=A)
    vector = SkellamVectorEvent(variance=4096.0, l2_sensitivity=12.5, adjacency=A)
    steps = StaircaseEvent(epsilon=0.5, inner_width=0.4375, adjacency=A)
    cut = TruncatedLaplaceEvent(noise_multiplier=2.0, bound=30.0, adjacency=A)
    near = TruncatedLaplaceEvent(noise_multiplier=0.03125, bound=0.75, adjacency=A)
    ledger.grant(count, purpose="a count", delta=1e-6).draw(count, purpose="count")
    ledger.grant(PoissonSampled(count, sampling_rate=0.125), purpose="a sampled count", delta=1e-6)
    ledger.grant(Composed((vector, Repeated(count, count=4))), purpose="a vector and counts", delta=1e-6)
    ledger.grant(steps, purpose="steps").draw(steps, purpose="mean")
    ledger.grant(Repeated(PoissonSampled(steps, sampling_rate=0.25), count=30), purpose="sampled steps", delta=1e-6)
    ledger.grant(cut, purpose="bounded noise", delta=1e-6).draw(cut, purpose="mean")
    ledger.grant(PoissonSampled(cut, sampling_rate=0.125), purpose="bounded noise on a sample", delta=1e-6)
    ledger.grant(PoissonSampled(near, sampling_rate=2.0**-16), purpose="short noise on a sample", delta=2e-5)


def replaced_rows() -> None:
    """Secret samples under replace-one: of a fixed size, and by Poisson sampling."""
    R = Adjacency.REPLACE_ONE
    ledger = open_ledger("replaced-rows", Budget(epsilon=10.0, delta=1e-5, adjacency=R), BasicFilter())
    if ledger is None:
        return
    moved = GaussianEvent(noise_multiplier=1.5, adjacency=R)
    batch = FixedSizeSampled(moved, sample_size=32, population=1024)
    ledger.grant(batch, purpose="one batch", delta=1e-6).draw(batch, purpose="step")
    ledger.grant(Repeated(batch, count=40), purpose="batches", delta=1e-6)
    answer = RandomizedResponseEvent(epsilon=1.0, categories=3, adjacency=R)
    ledger.grant(FixedSizeSampled(answer, sample_size=8, population=64), purpose="sampled answers")
    present = GaussianEvent(noise_multiplier=3.0, adjacency=A)
    poisson = ReplaceOneSampled(moved, add_remove=present, sampling_rate=0.03125)
    ledger.grant(poisson, purpose="one Poisson sample", delta=1e-6).draw(poisson, purpose="step")
    ledger.grant(Repeated(poisson, count=40), purpose="Poisson samples", delta=1e-6)


def selections() -> None:
    """The best of many runs, and correlated noise as the Gaussian pair that it is."""
    ledger = open_ledger("selections", Budget(epsilon=20.0, delta=1e-5, adjacency=A), BasicFilter())
    if ledger is None:
        return
    run = Repeated(gaussian(16.0), count=4)
    best = RepeatedSelection(run, shape=1.0, stopping_rate=0.125)
    ledger.grant(best, purpose="the best of many", delta=1e-6).draw(best, purpose="select")
    ledger.grant(RepeatedSelection(laplace(8.0), shape=0.0, stopping_rate=0.25), purpose="the best, purely")
    several = Composed((Repeated(PoissonSelection(gaussian(16.0), mean=20.0), count=3), laplace(8.0)))
    ledger.grant(several, purpose="the best of Poisson many, and a count", delta=1e-6)
    mixed = Composed((laplace(16.0), gaussian(16.0)))
    ledger.grant(PoissonSelection(mixed, mean=4.0), purpose="a run without a profile", delta=1e-6)


def zcdp_filter() -> None:
    """Everything that has a rho, under the filter of all orders."""
    ledger = open_ledger("zcdp-filter", Budget(epsilon=4.0, delta=1e-5, adjacency=A), ZCDPFilter())
    if ledger is None:
        return
    draw_all(ledger, Composed((gaussian(8.0), Repeated(laplace(10.0), count=2))), "mixed")
    selection = BoundedRangeEvent(epsilon=0.25, adjacency=A)
    draw_all(ledger, Parallel((selection, PureEvent(epsilon=0.125, adjacency=A)), probabilities=(0.5, 0.5)), "groups")
    draw_all(ledger, ZeroConcentratedEvent(rho=0.0625, adjacency=A), "stated")
    draw_all(ledger, DiscreteGaussianEvent(scale=4.0, sensitivity=1, adjacency=A), "a count")
    draw_all(ledger, PoissonSampled(laplace(2.0), sampling_rate=0.125), "a sampled mean")


def renyi_filter() -> None:
    """Format of a filter with a parameter: sampled Gaussian steps in plans chosen one after the other, at one order."""
    ledger = open_ledger("renyi-filter", BUDGET, RenyiFilter(order=24.0))
    if ledger is None:
        return
    step = PoissonSampled(gaussian(2.0), sampling_rate=0.015625)
    ledger.grant(Repeated(step, count=100), purpose="first").draw(step, purpose="step 1")
    ledger.grant(Composed((Repeated(step, count=50), laplace(20.0))), purpose="second").draw(step, purpose="step 1")


def whitehouse_filter() -> None:
    """Many small plans under advanced composition, for two analysts: format version 2, and a filter's parameter."""
    path = FOLDER / "whitehouse-filter.ledger.jsonl"
    if path.exists():
        return
    with Ledger.open(
        path, dataset="golden", budget=Budget(epsilon=2.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW,
        filter=AdvancedCompositionFilter(delta_prime=1e-6), analysts={"ada": 0.75, "ben": 0.25}, analyst="ada",
    ) as ledger:  # fmt: skip
        for number in range(3):
            draw_all(ledger, laplace(16.0), f"mean {number + 1}")
        ledger.grant(Repeated(gaussian(64.0), count=4), purpose="means", delta=1e-6).draw(
            gaussian(64.0), purpose="mean"
        )


def filtered_rounds() -> None:
    """Rounds under an individual filter, after a release that was planned with them: full batch, and sampled."""
    ledger = open_ledger("filtered-rounds", Budget(epsilon=4.0, delta=1e-5, adjacency=A), BasicFilter())
    if ledger is None:
        return
    full = FilteredEvent(gaussian(32.0), limit=GDPEvent(mu=0.25, adjacency=A))
    draw_all(ledger, Composed((gaussian(16.0), full)), "boosting", delta=5e-6)
    sampled = PoissonSampled(gaussian(2.0), sampling_rate=0.015625)
    curve = FilteredEvent(sampled, limit=RenyiEvent(orders=(12.0,), divergences=(0.5,), adjacency=A))
    draw_all(ledger, Composed((laplace(64.0), curve)), "boosting on samples", delta=5e-6)


def federation() -> None:
    """A server's ledger, and a client's account: a draw that it missed, an attempt that was given up, a torn line."""
    plan = Composed((laplace(2.0), Repeated(PoissonSampled(gaussian(8.0), sampling_rate=0.25), count=3)))
    session, budget = bytes(range(16)), Budget(epsilon=2.0, delta=1e-5, adjacency=A)
    ledger = open_ledger("federation-server", budget, BasicFilter())
    if ledger is None:
        return
    grant = ledger.grant(plan, purpose=f"SGBDTClassifier.fit, federation {session.hex()}", delta=5e-6)
    sampled = PoissonSampled(gaussian(8.0), sampling_rate=0.25)
    for event in (laplace(2.0), sampled, sampled, sampled):
        grant.draw(event, purpose="trees")
    place = FOLDER / "federation-client.ledger.jsonl"
    mine = ClientAccount(place, dataset="golden", budget=budget, unit=PrivacyUnit.ROW)
    mine.join(
        SessionTerms(
            session=session, plan=b"p" * 32, event=plan, unit=PrivacyUnit.ROW, server="SHA256:golden", delta=5e-6
        )
    )
    mine.fix(session, "roster", b"r" * 32)
    everybody, some = members_digest({0, 1, 2}), members_digest({0, 2})
    for round_, attempt, kind in (
        (1, 1, "upload"), (1, 1, "unmask"), (3, 1, "upload"), (3, 1, "recover"), (3, 2, "upload"), (3, 2, "unmask"),
        (4, 1, "upload"), (4, 1, "unmask"),
    ):  # fmt: skip
        survivors = {"upload": "", "recover": some, "unmask": everybody}[kind]
        answer = SumAnswer(round=round_, attempt=attempt, kind=kind, live=everybody, survivors=survivors)
        event = laplace(2.0) if round_ == 1 else sampled
        release = event if round_ == 1 else gaussian(8.0)
        if kind == "upload":
            mine.answer(answer, session=session, draw=round_, event=event, release=release)
        else:
            mine.answer(answer, session=session)
    mine.close()
    answers = Path(f"{place}.answers")
    answers.write_bytes(answers.read_bytes()[:-40])
    ClientAccount(place).joined(session)


def about() -> None:
    """Format version 3: owner, description and day of opening; first for anyone, later shared by two analysts."""
    path = FOLDER / "about.ledger.jsonl"
    if path.exists():
        return
    said = {"owner": "Privacy office, Ada Ä.", "description": "Counts for the yearly report", "opened": "2026-11-28"}
    with Ledger.open(path, dataset="golden", budget=BUDGET, unit=PrivacyUnit.USER, **said) as ledger:
        ledger.spend(PureEvent(epsilon=0.25, adjacency=A), purpose="before the analysts")
        ledger.migrate(analysts={"ada": 0.5, "ben": 0.25}, analyst="ada")
        ledger.spend(PureEvent(epsilon=0.5, adjacency=A), purpose="hers")
    with Ledger.open(path, analyst="ben") as ledger:
        draw_all(ledger, gaussian(64.0), "his", delta=2e-6)


def allocations() -> None:
    """One step of each unit: two passes of Gaussian noise, and one of Laplace noise."""
    ledger = open_ledger("allocations", Budget(epsilon=10.0, delta=1e-5, adjacency=A), BasicFilter())
    if ledger is None:
        return
    draw_all(ledger, Repeated(RandomAllocation(gaussian(2.0), steps=16), count=2), "two passes", delta=1e-6)
    draw_all(ledger, RandomAllocation(laplace(4.0), steps=9), "one of nine steps", delta=1e-6)


def mixtures() -> None:
    """Random shifts under Gaussian noise: a unit with several rows in a sample, alone, repeated and sampled again."""
    ledger = open_ledger("mixtures", Budget(epsilon=10.0, delta=1e-5, adjacency=A), BasicFilter())
    if ledger is None:
        return
    rows = user_sampled(gaussian(2.0), sampling_rate=0.0625, rows_at_most=3)
    shifts = GaussianMixtureEvent(
        shifts=(0.5, 1.0, 4.0), probabilities=(0.25, 0.5, 0.125), noise_multiplier=4.0, adjacency=A
    )
    draw_all(ledger, rows, "one step", delta=1e-6)
    draw_all(ledger, Repeated(rows, count=20), "steps", delta=1e-6)
    draw_all(ledger, PoissonSampled(shifts, sampling_rate=0.25), "a sample of units", delta=1e-6)


if __name__ == "__main__":
    full_batch()
    sampled_and_laplace()
    gdp_filter()
    reproducible_randomness()
    bounded_range()
    stated()
    randomised_response()
    integers()
    analysts()
    migrated()
    checkpointed()
    cut_and_stepped()
    replaced_rows()
    selections()
    zcdp_filter()
    renyi_filter()
    whitehouse_filter()
    filtered_rounds()
    federation()
    about()
    allocations()
    mixtures()
