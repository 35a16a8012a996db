# ruff: noqa: E501
"""Refuted, unconfirmed, confirmed: what a forger once got accepted, and what was refused wrongly."""

import dataclasses
import hashlib
import json
import math

import pytest

from ledgerwood.accounting import (
    Adjacency,
    BasicFilter,
    Budget,
    Composed,
    FixedSizeSampled,
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    Parallel,
    PoissonSampled,
    PrivacyUnit,
    ProfileEvent,
    PureEvent,
    RandomAllocation,
    RenyiFilter,
    Repeated,
    ReplaceOneSampled,
    TruncatedLaplaceEvent,
    ZCDPFilter,
)
from ledgerwood.accounting.events.serial import from_json, to_json
from ledgerwood.accounting.ledger import LedgerRecord
from ledgerwood.errors import LedgerCorrupted, PrivacyError
from ledgerwood.verification import verify_ledger
from ledgerwood.verification.ledgers.pairs import parse

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def gaussian(multiplier, adjacency=A):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=adjacency)


def laplace(multiplier, adjacency=A):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=adjacency)


def book(event, filter_=None, delta=1e-5):
    """A ledger in which the event was granted honestly."""
    ledger = Ledger(
        Budget(epsilon=1e6, delta=1e-2, adjacency=event.adjacency),
        unit=PrivacyUnit.ROW,
        filter=filter_ or BasicFilter(),
    )
    ledger.grant(event, purpose="p", delta=delta if filter_ is None else None)
    return list(ledger.record().lines)


def canonical(record):
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def edited(lines, folder, **changes):
    """The ledger with its grant's fields changed, hashed anew."""
    body = json.loads(lines[1])
    for key, value in changes.items():
        body[key] = body[key] | value if isinstance(value, dict) and key == "charge" else value
    del body["hash"]
    line = canonical(body | {"hash": hashlib.sha256(canonical(body).encode()).hexdigest()})
    path = folder / "edited.jsonl"
    path.write_text(lines[0] + "\n" + line + "\n")
    return path


def stated(event, folder, epsilon, delta=1e-5):
    """A ledger with this charge for the event, whatever the library thinks of it."""
    charge = {"epsilon": epsilon, "delta": delta, "method": "pld"}
    lines = book(PureEvent(epsilon=0.1, adjacency=event.adjacency), delta=0.0)
    body = json.loads(lines[1]) | {"event": to_json(event), "charge": charge}
    del body["hash"]
    line = canonical(body | {"hash": hashlib.sha256(canonical(body).encode()).hexdigest()})
    path = folder / "stated.jsonl"
    path.write_text(lines[0] + "\n" + line + "\n")
    return path


CHEAP = tuple(PureEvent(epsilon=1e-6 * (1 + i / 128), adjacency=A) for i in range(64))
COSTLY = Repeated(PoissonSampled(gaussian(1.0), sampling_rate=0.01), count=10_000)  # 6.187712 at 1e-5
POINTS = tuple(i / 512 for i in range(1025))
FORGED = [
    (Composed((*CHEAP, COSTLY)), 6.18),
    (Composed((COSTLY, *CHEAP)), 6.18),
    (Composed((*CHEAP[:32], COSTLY, *CHEAP[32:])), 6.18),
    (Composed((*CHEAP, *(laplace(0.1 + i / 1000) for i in range(10)))), 90.0),
    (Composed(tuple(laplace(3.0 + i / 400) for i in range(300))), 28.0),
    (PoissonSampled(Composed((*CHEAP[:16], *(laplace(0.5 + i / 10) for i in range(5)))), sampling_rate=0.1), 5.0),
    (Composed(tuple(laplace(20.0 + i / 40) for i in range(2000))), 5.23),
    (PoissonSampled(Repeated(laplace(100.0), count=10_000), sampling_rate=0.1), 1.67),
    (Repeated(TruncatedLaplaceEvent(noise_multiplier=2.0, bound=60.0, adjacency=A), count=1000), 166.0),
    (
        Repeated(
            ProfileEvent(epsilons=POINTS, deltas=tuple(0.5 * (1 - x / POINTS[-1]) ** 2 for x in POINTS), adjacency=A),
            count=1000,
        ),
        577.0,
    ),
]


@pytest.mark.slow  # the verifier bounds many plans from both sides
@pytest.mark.parametrize(("event", "least"), FORGED)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_nothing_is_left_out(tmp_path, event, least, share):
    with pytest.raises(LedgerCorrupted, match="entry 1: the recorded epsilon .* is below") as refused:
        verify_ledger(stated(event, tmp_path, share * least))
    report = refused.value.report
    assert report.verdict == "refuted"
    assert report.verdicts[0].lower >= least
    assert report.epsilon_readded >= least


@pytest.mark.slow  # the verifier bounds many plans from both sides
@pytest.mark.parametrize(
    ("event", "rho"),
    [
        (Repeated(PoissonSampled(PureEvent(epsilon=7.5, adjacency=A), sampling_rate=1e-3), count=100), 3.80),
        (PoissonSampled(PureEvent(epsilon=12.0, adjacency=A), sampling_rate=1e-5), 0.0202),
        (PoissonSampled(PureEvent(epsilon=30.0, adjacency=A), sampling_rate=1e-9), None),
    ],
)
def test_rho_is_looked_for_at_every_order(tmp_path, event, rho):
    """sup_a D_a / a by enumeration of the two outputs, over ten thousand orders."""
    inner, count = (event.event, event.count) if isinstance(event, Repeated) else (event, 1)
    e, q = inner.event.epsilon, inner.sampling_rate
    heavy = 1 / (1 + math.exp(-e))
    best = 0.0
    for k in range(1, 10_000):
        a = 1 + math.exp(-6 + k * 0.0016)
        ratios = (1 - q + q * math.exp(e), heavy * math.exp(-e)), (1 - q + q * math.exp(-e), heavy)
        top = max(a * math.log(r) + math.log(m) for r, m in ratios)
        found = (top + math.log(sum(math.exp(a * math.log(r) + math.log(m) - top) for r, m in ratios))) / (a - 1) / a
        best = max(best, found)
    best *= count
    assert rho is None or best >= rho
    lines = book(event, ZCDPFilter())
    verdict = verify_ledger(LedgerRecord.from_lines(tuple(lines))).verdicts[0]
    assert verdict.verdict == "confirmed"
    assert 0.99 * best <= verdict.lower <= best * (1 + 1e-6)
    assert best * (1 - 1e-9) <= verdict.upper <= 1.02 * best
    for share in (0.0, 0.1, 0.5, 0.98):
        with pytest.raises(LedgerCorrupted, match="the recorded rho"):
            verify_ledger(edited(lines, tmp_path, charge={"rho": share * best}))


MIXED = Composed((laplace(2.0, R), gaussian(3.0, R)))
HONEST = [
    FixedSizeSampled(MIXED, sample_size=10, population=1000),
    Repeated(FixedSizeSampled(MIXED, sample_size=10, population=1000), count=100),
    ReplaceOneSampled(MIXED, add_remove=Composed((laplace(4.0), gaussian(6.0))), sampling_rate=0.01),
    Repeated(
        ReplaceOneSampled(MIXED, add_remove=Composed((laplace(4.0), gaussian(6.0))), sampling_rate=0.01), count=50
    ),
    Composed((*CHEAP, COSTLY)),
    Parallel.worst((laplace(2.0), gaussian(2.0))),
]


@pytest.mark.slow_after(1)  # the verifier bounds many plans from both sides
@pytest.mark.parametrize("event", HONEST)
def test_honest_nestings_are_confirmed(event):
    report = verify_ledger(LedgerRecord.from_lines(tuple(book(event, delta=1e-6))))
    found = report.verdicts[0]
    assert (report.verdict, found.verdict) == ("confirmed", "confirmed")
    assert found.lower <= found.charge * (1 + 1e-9)
    assert found.upper <= found.charge * 1.01
    assert report.epsilon_readded >= max(found.charge, found.upper)


def test_renyi_divergences_of_samples_have_both_bounds(tmp_path):
    event = PoissonSampled(gaussian(2.0), sampling_rate=0.1)
    lines = book(event, RenyiFilter(order=8.0))
    found = verify_ledger(LedgerRecord.from_lines(tuple(lines))).verdicts[0]
    assert (found.verdict, found.currency) == ("confirmed", "divergence")
    assert found.lower == pytest.approx(found.charge, rel=1e-9)
    with pytest.raises(LedgerCorrupted, match="the recorded divergence"):
        verify_ledger(edited(lines, tmp_path, charge={"divergence": 0.99 * found.charge}))


@pytest.mark.slow  # the verifier bounds many plans from both sides
@pytest.mark.parametrize(
    "event",
    [
        RandomAllocation(gaussian(2.0), selected=2, steps=6),
        Composed((Repeated(RandomAllocation(laplace(3.0), selected=2, steps=5), count=2), gaussian(2.0))),
    ],
)
def test_an_allocation_of_several_steps_is_held_to_its_blocks(event, tmp_path):
    """Its lower bound is far off, but a charge that the blocks do not explain is not confirmed by them."""
    lines = book(event)
    honest = verify_ledger(LedgerRecord.from_lines(tuple(lines))).verdicts[0]
    assert honest.verdict == "confirmed"
    assert honest.lower <= honest.charge
    assert honest.upper <= 1.01 * honest.charge
    for share in (0.995, 0.96):
        less = verify_ledger(stated(event, tmp_path, share * honest.charge)).verdicts[0]
        assert (less.verdict, less.charge < less.upper) == ("unconfirmed", True)
    with pytest.raises(LedgerCorrupted, match="is below"):
        verify_ledger(stated(event, tmp_path, 0.5 * honest.lower))


def test_what_is_not_bounded_is_unconfirmed_and_counts_as_infinite(tmp_path):
    """Divergences at orders that are far too small for the delta say nothing of the losses."""
    event = Composed((from_json(to_json(laplace(1e7))), PureEvent(epsilon=0.1, adjacency=A)))
    report = verify_ledger(stated(event, tmp_path, 0.1000002))
    assert report.verdict in ("confirmed", "unconfirmed")
    record = {"type": "RenyiEvent", "orders": [1.0001], "divergences": [5.0], "adjacency": "add-remove"}
    report = verify_ledger(stated(from_json(record), tmp_path, 20.0))
    assert report.verdict == "unconfirmed"
    assert report.epsilon_readded > 1e4


BAD = [
    {"type": "GaussianEvent", "noise_multiplier": 1e101, "adjacency": "add-remove"},
    {"type": "PureEvent", "epsilon": 1e-101, "adjacency": "add-remove"},
    {"type": "DiscreteGaussianEvent", "scale": 0.05, "sensitivity": 1, "adjacency": "add-remove"},
    {"type": "Repeated", "event": to_json(laplace(1.0)), "count": 2**53 + 1},
    {"type": "PoissonSampled", "event": to_json(laplace(1.0)), "sampling_rate": 1e-101},
    {
        "type": "Parallel",
        "events": [to_json(FixedSizeSampled(laplace(1.0, R), sample_size=1, population=10))],
        "probabilities": [1.0],
    },
    {
        "type": "FixedSizeSampled",
        "event": {"type": "Repeated", "count": 2, "event": to_json(FixedSizeSampled(laplace(1.0, R), sample_size=1, population=10**6))},
        "sample_size": 100,
        "population": 1000,
    },
]  # fmt: skip


@pytest.mark.parametrize("record", BAD, ids=lambda record: record["type"])
def test_what_the_library_refuses_is_refused(record):
    with pytest.raises(ValueError, match=r"is not a|over too many|fixed-size sample|population"):
        parse(record)


def test_the_ranges_are_those_of_the_librarys_constructors():
    """Every single number of every event: just inside of both ends it is constructed, just outside refused, by both."""
    from ledgerwood.accounting.events import serial
    from ledgerwood.verification.ledgers.pairs import ranges

    examples = {
        "GaussianEvent": to_json(gaussian(1.0)),
        "LaplaceEvent": to_json(laplace(1.0)),
        "PureEvent": to_json(PureEvent(epsilon=1.0, adjacency=A)),
        "RandomizedResponseEvent": {"type": "RandomizedResponseEvent", "epsilon": 1.0, "categories": 3, "adjacency": "replace-one"},
        "BoundedRangeEvent": {"type": "BoundedRangeEvent", "epsilon": 1.0, "adjacency": "add-remove"},
        "DiscreteLaplaceEvent": {"type": "DiscreteLaplaceEvent", "scale": 2.0, "sensitivity": 1, "adjacency": "add-remove"},
        "DiscreteGaussianEvent": {"type": "DiscreteGaussianEvent", "scale": 2.0, "sensitivity": 1, "adjacency": "add-remove"},
        "SkellamEvent": {"type": "SkellamEvent", "variance": 9.0, "sensitivity": 1, "adjacency": "add-remove"},
        "SkellamVectorEvent": {"type": "SkellamVectorEvent", "variance": 9.0, "l2_sensitivity": 2.0, "adjacency": "add-remove"},
        "GaussianMixtureEvent": {"type": "GaussianMixtureEvent", "shifts": [1.0, 2.0], "probabilities": [0.2, 0.05], "noise_multiplier": 2.0, "adjacency": "add-remove"},
        "StaircaseEvent": {"type": "StaircaseEvent", "epsilon": 1.0, "inner_width": 0.5, "adjacency": "add-remove"},
        "TruncatedLaplaceEvent": {"type": "TruncatedLaplaceEvent", "noise_multiplier": 1.0, "bound": 9.0, "adjacency": "add-remove"},
        "GDPEvent": {"type": "GDPEvent", "mu": 1.0, "adjacency": "add-remove"},
        "ZeroConcentratedEvent": {"type": "ZeroConcentratedEvent", "rho": 1.0, "adjacency": "add-remove"},
        "ApproximateEvent": {"type": "ApproximateEvent", "epsilon": 1.0, "delta": 1e-6, "adjacency": "add-remove"},
        "PoissonSampled": {"type": "PoissonSampled", "event": to_json(laplace(1.0)), "sampling_rate": 0.5},
        "ReplaceOneSampled": {"type": "ReplaceOneSampled", "event": to_json(laplace(1.0, R)), "add_remove": to_json(laplace(2.0)), "sampling_rate": 0.5},
        "RepeatedSelection": {"type": "RepeatedSelection", "event": to_json(laplace(1.0)), "shape": 1.0, "stopping_rate": 0.5},
        "PoissonSelection": {"type": "PoissonSelection", "event": to_json(laplace(1.0)), "mean": 2.0},
        "RandomAllocation": {"type": "RandomAllocation", "event": to_json(laplace(1.0)), "selected": 1, "steps": 2**30},
        "FixedSizeSampled": {"type": "FixedSizeSampled", "event": to_json(laplace(1.0, R)), "sample_size": 1, "population": 2**53},
        "Repeated": {"type": "Repeated", "event": to_json(laplace(1.0)), "count": 2},
    }  # fmt: skip

    def refused(read, record, errors):
        try:
            read(record)
        except errors:
            return True
        return False

    tried = 0
    for kind, cls in serial._CLASSES.items():
        scalars = {f.name for f in dataclasses.fields(cls) if f.type in ("float", "int", float, int)}
        scalars = {"mu" if kind == "GDPEvent" and name == "limit" else name for name in scalars}  # its record's name
        listed = set(ranges.REALS.get(kind, {})) | set(ranges.COUNTS.get(kind, {}))
        assert scalars == listed, kind  # no number of any event is without a range
        for name, (low, high) in (ranges.REALS.get(kind, {}) | ranges.COUNTS.get(kind, {})).items():
            whole = isinstance(low, int)
            below, above = (
                (low - 1, high + 1) if whole else (math.nextafter(low, -math.inf), math.nextafter(high, math.inf))
            )
            for value in (below, low, high, above, -1, 0):
                record = examples[kind] | {name: value if whole else float(value)}
                ours = refused(parse, record, ValueError)
                theirs = refused(from_json, record, PrivacyError)
                assert ours == theirs, record
                tried += 1
    assert tried > 150


REPLACED = [  # a row's presence costs far more than its replacement, so that the replacement alone bounds the sample
    (PureEvent(epsilon=0.5, adjacency=R), PureEvent(epsilon=5.0, adjacency=A), 0.9),
    (PureEvent(epsilon=0.1, adjacency=R), laplace(0.2), 0.5),
    (laplace(4.0, R), laplace(0.25), 0.7),
    (gaussian(4.0, R), gaussian(0.5), 0.3),
    (MIXED, gaussian(0.5), 0.6),
]


@pytest.mark.slow_after(2)  # the verifier bounds many plans from both sides
@pytest.mark.parametrize("filter_", [None, RenyiFilter(order=8.0)], ids=["basic", "renyi"])
@pytest.mark.parametrize(("event", "present", "rate"), REPLACED)
def test_a_row_whose_presence_costs_more_than_its_replacement_is_confirmed(event, present, rate, filter_):
    """docs/explanation/events.md#replaced-row: never more than q H of the replacement; once refuted."""
    sampled = ReplaceOneSampled(event, add_remove=present, sampling_rate=rate)
    for plan in (sampled, Repeated(sampled, count=20)):
        if filter_ is not None and event is MIXED:
            continue  # the library knows no Renyi divergence of it
        found = verify_ledger(LedgerRecord.from_lines(tuple(book(plan, filter_, delta=1e-6)))).verdicts[0]
        assert found.verdict == "confirmed", found.reason


def test_an_honest_pure_charge_of_a_replaced_row_is_its_replacements():
    sampled = ReplaceOneSampled(REPLACED[0][0], add_remove=REPLACED[0][1], sampling_rate=0.9)
    found = verify_ledger(LedgerRecord.from_lines(tuple(book(sampled, delta=0.0)))).verdicts[0]
    assert (found.verdict, found.charge, found.lower, found.upper) == ("confirmed", 0.5, 0.5, 0.5)
