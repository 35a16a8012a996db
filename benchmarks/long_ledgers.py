"""Ledgers of up to a million spends: seconds a spend, memory, seconds to open and to verify, for each filter and place.

    python -m benchmarks.long_ledgers --save [--spends 100,10000] [--folder /dev/shm]

Each case runs in a process of its own, whose largest resident memory is recorded. All events differ from each other.
A spend is two entries, a grant and a draw. Files and databases wait for the disk that `--folder` is on. Every duration
is recorded twice: by the clock, and in seconds of the processor, which other work on the machine does not lengthen.
"""

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledgerwood.accounting import (
    Adjacency,
    AdvancedCompositionFilter,
    BasicFilter,
    Budget,
    GaussianEvent,
    GDPFilter,
    Ledger,
    PrivacyUnit,
    PureEvent,
    PureOdometer,
    RenyiFilter,
    RenyiOdometer,
    WhitehouseOdometer,
    ZCDPFilter,
)
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.filters import Filter
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=50.0, delta=1e-5, adjacency=A)
FILTERS: dict[str, Filter] = {
    "basic": BasicFilter(), "zcdp": ZCDPFilter(), "gdp": GDPFilter(), "renyi": RenyiFilter(order=4.0),
    "whitehouse": AdvancedCompositionFilter(delta_prime=1e-6),
}  # fmt: skip
ODOMETERS = {
    "pure": PureOdometer(), "renyi": RenyiOdometer(delta=1e-6),
    "whitehouse": WhitehouseOdometer(delta=1e-5, delta_prime=1e-6),
}  # fmt: skip
PLACES = ("memory", "file", "sqlite")
_VERIFIED = 300_000  # spends, at most: the verifier holds every verdict
_FOUND = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "long_ledgers.json"


def event(name: str, place: int) -> Event:
    """The event of one spend; no two are equal."""
    size = 1e6 * (1.0 + place * 1e-7)
    if name in ("basic", "whitehouse", "pure"):
        return PureEvent(epsilon=1.0 / size, adjacency=A)
    return GaussianEvent(noise_multiplier=size, adjacency=A)


@dataclass(frozen=True)
class _Start:
    """A point in time, by the clock and by the processor time of this process."""

    clock: float = field(default_factory=time.perf_counter)
    processor: float = field(default_factory=time.process_time)

    def until(self, end: "_Start", name: str, *, each: float = 1.0) -> dict[str, float]:
        """Both durations until another point, times `each`, under `name` and `processor_name`."""
        return {
            name: each * (end.clock - self.clock),
            f"processor_{name}": each * (end.processor - self.processor),
        }

    def seconds(self, name: str) -> dict[str, float]:
        """Both durations until now."""
        return self.until(_Start(), name)


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _ledger(name: str, place: str, folder: Path, *, from_checkpoint: bool = False) -> Ledger:
    if place == "memory":
        return Ledger(BUDGET, unit=PrivacyUnit.ROW, filter=FILTERS[name])
    url = folder / "x.jsonl" if place == "file" else f"sqlite:///{folder}/x.db"
    terms: dict[str, Any] = {"budget": BUDGET, "unit": PrivacyUnit.ROW, "filter": FILTERS[name]}
    return Ledger.open(url, dataset="d", **terms, from_checkpoint=from_checkpoint)


def spending(name: str, place: str, spends: int, folder: str) -> dict[str, Any]:
    """One ledger that is spent from, opened again and verified."""
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        ledger = _ledger(name, place, Path(inside))
        before = _megabytes()
        started = late = _Start()
        for number in range(spends):
            if number == spends - spends // 10:
                late = _Start()
            ledger.spend(event(name, number), purpose="p")
        ended = _Start()
        found = {
            "filter": name, "place": place, "spends": spends,
            **started.until(ended, "us_a_spend", each=1e6 / spends),
            **late.until(ended, "us_a_late_spend", each=1e6 / (spends // 10)),
            "megabytes": _megabytes(), "megabytes_before": before, "spent": ledger.spent().epsilon,
        }  # fmt: skip
        url = Path(inside) / "x.jsonl" if place == "file" else f"sqlite:///{inside}/x.db"
        if place != "memory":
            ledger.close()
            started = _Start()
            again = _ledger(name, place, Path(inside))
            found |= started.seconds("open_seconds")
            if again.spent() != ledger.spent():
                raise AssertionError(f"{name} in {place}: another total after it was opened again")
            again.checkpoint()
            again.close()
            started = _Start()
            again = _ledger(name, place, Path(inside), from_checkpoint=True)
            found |= started.seconds("from_checkpoint_open_seconds")
            again.close()
            started = _Start()
            verify_ledger(url, dataset="d", from_checkpoint=True)
            found |= started.seconds("from_checkpoint_verify_seconds")
        if spends <= _VERIFIED:
            started = _Start()
            if place == "sqlite":
                report = verify_ledger(url, dataset="d")
            else:
                report = verify_ledger(Path(url) if place == "file" else ledger.record())
            found |= {**started.seconds("verify_seconds"), "verdict": report.verdict}
            found["megabytes_verified"] = _megabytes()
    return found


def reading(name: str, spends: int) -> dict[str, Any]:
    """One odometer that reads an event at a time."""
    state, before = ODOMETERS[name].start(), _megabytes()
    started = late = _Start()
    for number in range(spends):
        if number == spends - spends // 10:
            late = _Start()
        state = state.after([event(name, number)])
    ended = _Start()
    epsilon = state.epsilon
    return {
        "odometer": name, "spends": spends,
        **started.until(ended, "us_an_event", each=1e6 / spends),
        **late.until(ended, "us_a_late_event", each=1e6 / (spends // 10)),
        **ended.until(_Start(), "us_a_reading", each=1e6),
        "megabytes": _megabytes(), "megabytes_before": before, "epsilon": epsilon,
    }  # fmt: skip


def _alone(function: Any, *arguments: Any) -> dict[str, Any]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found: dict[str, Any] = pool.apply(function, arguments)
    print(json.dumps(found), flush=True)
    return found


def main() -> None:
    """Measure all cases that are asked for, and print them, or save them beside those that were saved before."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--spends", default="100,10000,100000,1000000")
    parser.add_argument("--filters", default=",".join(FILTERS))
    parser.add_argument("--places", default=",".join(PLACES))
    parser.add_argument("--odometers", default=",".join(ODOMETERS))
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.spends.split(",")]
    kept: dict[str, dict[str, Any]] = json.loads(_FOUND.read_text()) if _FOUND.exists() else {}
    for size in sizes:
        for name in filter(None, asked.filters.split(",")):
            for place in filter(None, asked.places.split(",")):
                kept[f"{name} {place} {size}"] = _alone(spending, name, place, size, asked.folder)
                _keep(kept, asked.save)
        for name in filter(None, asked.odometers.split(",")):
            kept[f"odometer {name} {size}"] = _alone(reading, name, size)
            _keep(kept, asked.save)


def _keep(found: dict[str, dict[str, Any]], save: bool) -> None:
    """After each case, since the large ones take many minutes."""
    if save:
        _FOUND.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
