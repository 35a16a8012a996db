"""Forge what plans cost, in ledgers whose hashes are right, and ask the verifier (none may be confirmed).

    python -m benchmarks.forged_ledgers [--seed 1] [--cases 300] [--seconds 1800] [--presets] [--json]

A case is a random nested plan: one costly part of some family of events at some position among cheap ones, under one
filter. A real ledger charges it; then four ledgers' worth of grants charge 0, .5, .9 and .99 of the *certified lower
end* of what it costs, in the filter's currency. The lower end is computed here, not by the verifier. Every forged
charge must be refuted or unconfirmed, no honest charge may be refuted. The table counts verdicts by family, position
and filter.
"""

import argparse
import functools
import hashlib
import json
import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import ledgerwood as lw
from benchmarks import forged_truths as truths
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
    FilteredEvent,
    FixedSizeSampled,
    GaussianEvent,
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
)
from ledgerwood.accounting.events import to_json
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.filters import Charge
from ledgerwood.errors import LedgerCorrupted, LedgerError, PrivacyError
from ledgerwood.verification import verify_ledger

A, R, Z = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT
DELTA = 1e-6
ORDER = 8.0
FRACTIONS = (0.0, 0.5, 0.9, 0.99)
FILTERS = {
    "basic": BasicFilter(),
    "gdp": GDPFilter(),
    "zcdp": ZCDPFilter(),
    "renyi": RenyiFilter(order=ORDER),
    "whitehouse": AdvancedCompositionFilter(delta_prime=1e-9),
}
LIMITS = {"basic": (1e9, 0.5), "gdp": (1e6, 0.5), "zcdp": (1e6, 0.5), "renyi": (1e9, 0.5), "whitehouse": (1e9, 0.5)}

# ------------------------------------------------------------------------------------------------- plans


def _whole(scale: float, size: float) -> int:
    return max(1, round(scale * size))


def _laplace_points(size: float, adjacency: Adjacency, count: int) -> ProfileEvent:
    epsilons = np.linspace(0.0, size, count)
    deltas = np.maximum(-np.expm1(0.5 * (epsilons - size)), 0.0)
    deltas[-1] = 0.0
    return ProfileEvent(epsilons=tuple(epsilons.tolist()), deltas=tuple(deltas.tolist()), adjacency=adjacency)


def _renyi_points(size: float, adjacency: Adjacency) -> RenyiEvent:
    orders = (1.5, 2.0, 4.0, ORDER, 16.0, 64.0)
    return RenyiEvent(orders=orders, divergences=tuple(a * size * size / 2.0 for a in orders), adjacency=adjacency)


FAMILIES: dict[str, Callable[[float, Adjacency], Event]] = {
    "gaussian": lambda e, a: GaussianEvent(noise_multiplier=1.0 / e, adjacency=a),
    "elliptical": lambda e, a: EllipticalGaussianEvent(
        sensitivities=(0.6 * e, 0.8 * e), stddevs=(1.0, 1.0), adjacency=a
    ),
    "laplace": lambda e, a: LaplaceEvent(noise_multiplier=1.0 / e, adjacency=a),
    "pure": lambda e, a: PureEvent(epsilon=e, adjacency=a),
    "bounded range": lambda e, a: BoundedRangeEvent(epsilon=e, adjacency=a),
    "randomised response": lambda e, _: RandomizedResponseEvent(epsilon=e, categories=4, adjacency=R),
    "discrete gaussian": lambda e, a: DiscreteGaussianEvent(
        scale=max(5.0, 1.0 / e), sensitivity=_whole(max(5.0, 1.0 / e), e), adjacency=a
    ),
    "discrete laplace": lambda e, a: DiscreteLaplaceEvent(
        scale=max(5.0, 1.0 / e), sensitivity=_whole(max(5.0, 1.0 / e), e), adjacency=a
    ),
    "skellam": lambda e, a: SkellamEvent(
        variance=max(25.0, e**-2), sensitivity=_whole(max(5.0, 1.0 / e), e), adjacency=a
    ),
    "skellam vector": lambda e, a: SkellamVectorEvent(
        variance=max(100.0, 4.0 * e**-2), l2_sensitivity=max(10.0 * e, 2.0), adjacency=a
    ),
    "staircase": lambda e, a: StaircaseEvent(epsilon=e, inner_width=0.4, adjacency=a),
    "truncated laplace": lambda e, a: TruncatedLaplaceEvent(
        noise_multiplier=1.0 / e, bound=max(30.0 / e, 2.0), adjacency=a
    ),
    "approximate": lambda e, a: ApproximateEvent(epsilon=e, delta=1e-12, adjacency=a),
    "renyi points": _renyi_points,
    "zero-concentrated": lambda e, a: ZeroConcentratedEvent(rho=0.5 * e * e, adjacency=a),
    "stated mu": lambda e, a: GDPEvent(mu=e, adjacency=a),
    "profile of 9": lambda e, a: _laplace_points(e, a, 9),
    "profile of 3000": lambda e, a: _laplace_points(e, a, 3000),
    "filtered": lambda e, a: FilteredEvent(
        GaussianEvent(noise_multiplier=10.0 / e, adjacency=a), limit=GDPEvent(mu=e, adjacency=a)
    ),
    "sampled gaussian": lambda e, a: PoissonSampled(
        GaussianEvent(noise_multiplier=0.5 / e, adjacency=a), sampling_rate=0.1
    ),
    "sampled laplace": lambda e, a: PoissonSampled(
        LaplaceEvent(noise_multiplier=0.25 / e, adjacency=a), sampling_rate=0.1
    ),
    "sampled pure": lambda e, a: PoissonSampled(PureEvent(epsilon=7.5 * e, adjacency=a), sampling_rate=1e-3),
    "fixed size": lambda e, _: FixedSizeSampled(
        GaussianEvent(noise_multiplier=0.5 / e, adjacency=R), sample_size=10, population=100
    ),
    "fixed size of mixed": lambda e, _: FixedSizeSampled(
        Composed(
            (LaplaceEvent(noise_multiplier=1.0 / e, adjacency=R), GaussianEvent(noise_multiplier=1.0 / e, adjacency=R))
        ),
        sample_size=30,
        population=100,
    ),
    "replace-one sampled": lambda e, _: ReplaceOneSampled(
        GaussianEvent(noise_multiplier=0.5 / e, adjacency=R),
        add_remove=GaussianEvent(noise_multiplier=1.0 / e, adjacency=A),
        sampling_rate=0.1,
    ),
    "replace-one sampled laplace": lambda e, _: ReplaceOneSampled(
        LaplaceEvent(noise_multiplier=0.5 / e, adjacency=R),
        add_remove=LaplaceEvent(noise_multiplier=1.0 / e, adjacency=A),
        sampling_rate=0.3,
    ),
    "replace-one sampled cheap": lambda e, _: ReplaceOneSampled(
        PureEvent(epsilon=e, adjacency=R), add_remove=PureEvent(epsilon=9.0 * e, adjacency=A), sampling_rate=0.9
    ),
    "selection of laplace": lambda e, a: RepeatedSelection(
        LaplaceEvent(noise_multiplier=2.0 / e, adjacency=a), shape=0.0, stopping_rate=0.05
    ),
    "selection": lambda e, a: RepeatedSelection(
        GaussianEvent(noise_multiplier=1.0 / e, adjacency=a), shape=1.0, stopping_rate=0.1
    ),
    "poisson selection": lambda e, a: PoissonSelection(LaplaceEvent(noise_multiplier=1.0 / e, adjacency=a), mean=5.0),
}
REPLACED = {
    "randomised response", "fixed size", "fixed size of mixed", "replace-one sampled", "replace-one sampled laplace",
    "replace-one sampled cheap",
}  # fmt: skip


def cheap(rng: np.random.Generator, count: int, a: Adjacency, total: float = 0.02) -> list[Event]:
    """Different events that cost at most `total` together."""
    found: list[Event] = []
    for k in range(count):
        size = total / count * rng.uniform(0.3, 1.0)
        match k % 4:
            case 0:
                found.append(LaplaceEvent(noise_multiplier=1.0 / size, adjacency=a))
            case 1:
                found.append(PureEvent(epsilon=size, adjacency=a))
            case 2 if a is not R:
                found.append(PoissonSampled(LaplaceEvent(noise_multiplier=1.0, adjacency=a), sampling_rate=0.5 * size))
            case _:
                found.append(LaplaceEvent(noise_multiplier=2.0 / size, adjacency=a))
    return found


def _sample(event: Event, rate: float) -> Event:
    if event.adjacency is R:
        return FixedSizeSampled(event, sample_size=max(1, round(1000 * rate)), population=1000)
    return PoissonSampled(event, sampling_rate=rate)


Builder = Callable[[Callable[[float], Event], np.random.Generator, Adjacency], Event]
POSITIONS: dict[str, Builder] = {
    "alone": lambda f, rng, _: f(rng.uniform(1.0, 6.0)),
    "first": lambda f, rng, a: Composed((f(rng.uniform(1.0, 4.0)), *cheap(rng, 5, a))),
    "middle": lambda f, rng, a: Composed((*cheap(rng, 4, a), Repeated(f(1.0), count=3), *cheap(rng, 4, a))),
    "last": lambda f, rng, a: Composed((*cheap(rng, 9, a), f(rng.uniform(1.0, 4.0)))),
    "after 64 kinds": lambda f, rng, a: Composed((*cheap(rng, 64, a), f(2.0))),
    "after 300 kinds": lambda f, rng, a: Composed((*cheap(rng, 300, a), Repeated(f(1.0), count=4))),
    "among 400 kinds": lambda f, rng, a: Composed(
        (*cheap(rng, 40, a), *(f(0.02 * (1.0 + k / 997.0)) for k in range(360)))
    ),
    "after 2000 kinds": lambda f, rng, a: Composed((*cheap(rng, 2000, a), f(3.0))),
    "repeated 50": lambda f, rng, _: Repeated(f(rng.uniform(0.05, 0.6)), count=50),
    "repeated 1000": lambda f, rng, _: Repeated(f(rng.uniform(0.02, 0.2)), count=1000),
    "repeated 1e6": lambda f, rng, _: Repeated(f(rng.uniform(5e-4, 2e-3)), count=10**6),
    "nested": lambda f, rng, a: Repeated(
        Composed((*cheap(rng, 2, a), Repeated(Composed((f(0.5), *cheap(rng, 1, a))), count=3))), count=2
    ),
    "in a sample": lambda f, rng, _: Repeated(_sample(f(rng.uniform(1.0, 4.0)), 0.1), count=20),
    "in a sample of many": lambda f, rng, a: _sample(Composed((*cheap(rng, 16, a), Repeated(f(1.0), count=5))), 0.3),
    "repeated in a sample": lambda f, _, __: _sample(Repeated(f(0.03), count=10_000), 0.1),
    "in a group": lambda f, rng, a: Composed(
        (Parallel((*cheap(rng, 2, a), f(3.0)), probabilities=(0.3, 0.3, 0.4)), *cheap(rng, 2, a))
    ),
    "in the worst group": lambda f, rng, a: Repeated(Parallel.worst((*cheap(rng, 2, a), f(1.0))), count=4),
    "in a selection": lambda f, rng, a: RepeatedSelection(
        Composed((*cheap(rng, 2, a), f(1.0))), shape=0.5, stopping_rate=0.1
    ),
}


LONG = ("after 300 kinds", "among 400 kinds", "after 2000 kinds")


@dataclass(frozen=True)
class Case:
    """A plan with its place in the table, and the filter that charges it."""

    family: str
    position: str
    filter: str
    event: Event


def case(family: str, position: str, filter_: str, rng: np.random.Generator) -> Case | None:
    """A random plan of this kind; None where the library refuses it."""
    a = R if family in REPLACED else (Z if rng.random() < 0.2 else A)
    try:
        event = POSITIONS[position](lambda size: FAMILIES[family](size, a), rng, a)
    except PrivacyError:
        return None
    return Case(family, position, filter_, event)


# ------------------------------------------------------------------------------------------------- truths


def lower_end(event: Event, charge: Charge) -> float | None:
    """What the plan costs at least, in the currency of its charge; None where this knows nothing."""
    try:
        if charge.mu is not None:
            return event.mu() * (1.0 - 1e-9)
        if charge.rho is not None:
            return truths.rho(event)
        if charge.divergence is not None:
            return truths.divergence(event, ORDER)
        assert charge.delta is not None
        if charge.delta == 0.0:
            return None if truths.inexact(event) else event.pure_epsilon() * (1.0 - 1e-9)
        return max(lw.price(event).epsilon_interval(charge.delta)[0], truths.epsilon(event, charge.delta))
    except PrivacyError:
        return None


@functools.lru_cache(maxsize=4)
def honest_charge(event: Event, filter_: str) -> Charge | None:
    """What a real ledger charges; None where its filter refuses the plan."""
    epsilon, delta = LIMITS[filter_]
    try:
        ledger = Ledger(
            Budget(epsilon=epsilon, delta=delta, adjacency=event.adjacency),
            unit=PrivacyUnit.ROW,
            filter=FILTERS[filter_],
        )
        wanted = DELTA if filter_ in ("basic", "whitehouse") else None
        return ledger.grant(event, purpose="honest", delta=wanted).charge
    except PrivacyError:
        return None


# ------------------------------------------------------------------------------------------------- ledgers


def canonical(record: Any) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def chained(records: list[dict[str, Any]]) -> list[str]:
    """Lines of a ledger with indices, links and hashes that are right."""
    lines, previous = [], "0" * 64
    for index, record in enumerate(records):
        body = {**record, "index": index, "previous": previous}
        previous = hashlib.sha256(canonical(body).encode()).hexdigest()
        lines.append(canonical({**body, "hash": previous}))
    return lines


def template(event: Event, filter_: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The records of an opening and of a grant, without index, link and hash."""
    epsilon, delta = LIMITS[filter_]
    budget = Budget(epsilon=epsilon, delta=delta, adjacency=event.adjacency)
    ledger = Ledger(budget, unit=PrivacyUnit.ROW, filter=FILTERS[filter_])
    opening = json.loads(ledger.record().lines[0])
    for key in ("index", "previous", "hash"):
        del opening[key]
    return opening, {"kind": "grant", "version": 1, "purpose": "p", "event": to_json(event)}


def charge_record(charge: Charge) -> dict[str, Any]:
    fields = {**charge.amounts(), "order": charge.order, "method": charge.method}
    return {key: value for key, value in fields.items() if value is not None}


def verdicts(lines: list[str]) -> list[str]:
    """The verifier's word of each grant; "refused" for all where it does not read the ledger to its end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.ledger.jsonl"
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        try:
            report = verify_ledger(path)
        except LedgerCorrupted as error:
            if error.report is None:
                return ["refused"] * (len(lines) - 1)
            report = error.report
        except LedgerError:
            return ["refused"] * (len(lines) - 1)
    return [found.verdict for found in report.verdicts]


@dataclass(frozen=True)
class Outcome:
    """Verdicts of one case: by fraction of the lower end, of the honest charge; seconds of a ledger of all of them."""

    case: Case
    forged: dict[float, str]
    honest: str
    seconds: float
    charge: Charge
    lower: float | None


def outcome(found: Case) -> Outcome | None:
    """Charge the plan honestly and falsely; None where the filter does not take it."""
    charge = honest_charge(found.event, found.filter)
    if charge is None:
        return None
    opening, grant = template(found.event, found.filter)
    honest = charge_record(charge)
    lower = lower_end(found.event, charge)
    currency = next(name for name in ("epsilon", "mu", "rho", "divergence") if name in honest)
    charges = [honest]
    if lower is not None and lower > 1e-9 and math.isfinite(lower):
        charges += [{**honest, currency: lower * fraction} for fraction in FRACTIONS]
    began = time.perf_counter()
    honest_word, *words = verdicts(chained([opening, *({**grant, "charge": one} for one in charges)]))
    seconds = time.perf_counter() - began
    forged = dict(zip(FRACTIONS, words, strict=False))
    return Outcome(found, forged, honest_word, seconds, charge, lower)


def cases(seed: int, count: int) -> Iterator[Case]:
    """`count` random cases: every family at every position once, under a filter by chance; then again, under others.

    In each round the positions of many kinds, which take long, come last.
    """
    rng = np.random.default_rng(seed)
    left = {(f, p): [str(k) for k in rng.permutation(list(FILTERS))] for f in FAMILIES for p in POSITIONS}
    made_so_far = 0
    while left:
        places = list(left)
        order = [places[place] for place in rng.permutation(len(places))]
        for family, position in sorted(order, key=lambda place: LONG.index(place[1]) if place[1] in LONG else -1):
            made = None
            while made is None and left[family, position]:
                made = case(family, position, left[family, position].pop(), rng)
                if made is not None and honest_charge(made.event, made.filter) is None:
                    made = None  # the filter does not take it
            if made is None:
                del left[family, position]
                continue
            yield made
            made_so_far += 1
            if made_so_far == count:
                return


GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"


def golden_verdicts() -> dict[str, list[str]]:
    """The verifier's words of every grant of the ledgers that are kept for ever."""
    paths = sorted(GOLDEN.glob("*.ledger.jsonl"))
    return {path.name: verdicts(path.read_text(encoding="utf-8").splitlines()) for path in paths}


def preset_plans() -> dict[str, tuple[Event, float]]:
    """The plan of every trainer's preset, without data, and the delta of its budget."""
    from benchmarks.systems import ENTRIES  # it imports the trainers
    from ledgerwood import Categorical, Numeric, Schema

    features = (*(Numeric(f"x{k}", 0.0, 1.0) for k in range(6)), Categorical("c", ("a", "b", "c")))
    found = {}
    for entry in ENTRIES:
        for kind in filter(None, (entry.classifier, entry.regressor)):
            target = Categorical("y", ("no", "yes")) if kind is entry.classifier else Numeric("y", 0.0, 10.0)
            schema = Schema(features=features, target=target)
            model = entry.model(kind, epsilon=1.0, schema=schema, expected_rows=10_000)
            plan = model.make_plan(schema.resolved(len(features)))
            found[f"{kind.__name__} {entry.preset} delta={entry.delta:g}"] = plan.event, entry.delta
    return found


def preset_verdicts() -> dict[str, tuple[str, float]]:
    """The verifier's word of each preset's honest charge, and its seconds."""
    found = {}
    for name, (event, delta) in preset_plans().items():
        ledger = Ledger(Budget(epsilon=1.0, delta=delta, adjacency=event.adjacency), unit=PrivacyUnit.ROW)
        ledger.grant(event, purpose="fit", delta=delta)
        began = time.perf_counter()
        (word,) = verdicts(list(ledger.record().lines))
        found[name] = word, time.perf_counter() - began
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--cases", type=int, default=300)
    arguments.add_argument("--seconds", type=float, default=1800.0, help="stop starting cases after that")
    arguments.add_argument("--family")
    arguments.add_argument("--position")
    arguments.add_argument("--filter")
    arguments.add_argument("--presets", action="store_true", help="only the golden ledgers and the trainers' presets")
    arguments.add_argument("--log", type=Path, help="append a line of JSON for each case to this file")
    arguments.add_argument("--table", type=Path, help="print the table of such a file, and do nothing else")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    if options.table:
        print(table([json.loads(line) for line in options.table.read_text().splitlines()]))
        return 0
    if options.presets:
        golden = Counter(word for words in golden_verdicts().values() for word in words)
        presets = preset_verdicts()
        for name, (word, seconds) in presets.items():
            print(f"{name:60} {word:12} {seconds:.2f} s")
        words = golden + Counter(word for word, _ in presets.values())
        print(f"golden {dict(golden)}; golden and presets {dict(words)}")
        return words["refuted"] + words["refused"] + (words["confirmed"] < 0.99 * words.total())
    began, outcomes = time.monotonic(), []
    for found in cases(options.seed, options.cases):
        if time.monotonic() - began > options.seconds:
            break
        if any(
            w and w != v
            for w, v in (
                (options.family, found.family),
                (options.position, found.position),
                (options.filter, found.filter),
            )
        ):
            continue
        done = outcome(found)
        if done is None:
            continue
        outcomes.append(done)
        if options.log:
            with options.log.open("a", encoding="utf-8") as file:
                print(json.dumps(line_of(done)), file=file)
        bad = [fraction for fraction, word in done.forged.items() if word == "confirmed"]
        if bad or done.honest in ("refuted", "refused") or (not options.json and done.seconds > 30.0):
            print(
                f"!! {found.family} / {found.position} / {found.filter}: forged {done.forged}, honest {done.honest}, "
                f"{done.seconds:.1f} s, charge {done.charge!r}, lower {done.lower!r}",
                flush=True,
            )
    return show(outcomes, as_json=options.json)


def line_of(done: Outcome) -> dict[str, Any]:
    """What is kept of a case."""
    return {
        "family": done.case.family, "position": done.case.position, "filter": done.case.filter,
        "forged": list(done.forged.values()), "honest": done.honest, "seconds": round(done.seconds, 2),
    }  # fmt: skip


GROUPS = {
    "few kinds, nested": ("alone", "first", "middle", "last", "nested"),
    "after 64 kinds": ("after 64 kinds",),
    "300 to 2,000 kinds": LONG,
    "repeated": ("repeated 50", "repeated 1000", "repeated 1e6"),
    "in a sample": ("in a sample", "in a sample of many", "repeated in a sample"),
    "in a group": ("in a group", "in the worst group"),
    "in a selection": ("in a selection",),
}
"""Positions that share a column."""


def table(lines: list[dict[str, Any]]) -> str:
    """Families by positions, in Markdown: of forged charges refuted / unconfirmed, of honest confirmed / unconfirmed.

    Whatever must not be, a forged charge that is confirmed or an honest one that is refuted, stands there as "!n".
    """
    assert {place for group in GROUPS.values() for place in group} == set(POSITIONS)
    rows = [["costly part", *GROUPS], ["---"] * (len(GROUPS) + 1)]
    for family in [*FAMILIES, "all"]:
        cells = []
        for group in GROUPS.values():
            mine = [line for line in lines if family in (line["family"], "all") and line["position"] in group]
            forged, honest = (
                Counter(word for line in mine for word in line["forged"]),
                Counter(x["honest"] for x in mine),
            )
            wrong = forged["confirmed"] + honest["refuted"] + honest["refused"]
            told = f"{forged['refuted'] + forged['refused']}/{forged['unconfirmed']}"
            told += f", {honest['confirmed']}/{honest['unconfirmed']}" + (f" !{wrong}" if wrong else "")
            cells.append(told if mine else "")
        rows.append([family, *cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def show(outcomes: list[Outcome], *, as_json: bool) -> int:
    """The tables; how many forged charges were confirmed, or honest ones refuted."""
    forged = Counter(word for done in outcomes for word in done.forged.values())
    honest = Counter(done.honest for done in outcomes)
    violations = forged["confirmed"] + honest["refuted"] + honest["refused"]
    if as_json:
        print(json.dumps({"cases": len(outcomes), "forged": forged, "honest": honest, "violations": violations}))
        return violations
    keys: dict[str, Callable[[Outcome], str]] = {
        "family": lambda done: done.case.family, "position": lambda done: done.case.position,
        "filter": lambda done: done.case.filter,
    }  # fmt: skip
    words = ("refuted", "unconfirmed", "refused", "confirmed")
    for title, key in keys.items():
        print(f"\n{title:22}{'cases':>6} |{'forged:':>8}" + "".join(f"{word:>12}" for word in words), end=" |")
        print(f"{'honest:':>8}" + "".join(f"{word:>12}" for word in words) + " | seconds at most")
        for name in sorted({key(done) for done in outcomes}):
            mine = [done for done in outcomes if key(done) == name]
            lied, told = (
                Counter(w for done in mine for w in done.forged.values()),
                Counter(done.honest for done in mine),
            )
            print(f"{name:22}{len(mine):6} |{'':8}" + "".join(f"{lied[word]:12}" for word in words), end=" |")
            print(f"{'':8}" + "".join(f"{told[word]:12}" for word in words) + f" | {max(d.seconds for d in mine):.2f}")
    print(f"\nforged {dict(forged)}; honest {dict(honest)}; violations {violations}")
    return violations


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
