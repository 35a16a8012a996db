"""Seconds and megabytes, warm medians, beside the peers."""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import ledgerwood as lw
from benchmarks import peers
from benchmarks.accounting import ORDERS, cases, event, sides
from benchmarks.accounting.cases import Draw
from benchmarks.accounting.sides import Answer, question
from ledgerwood.accounting.individuals import IndividualRenyi

ALL = np.array(ORDERS)  # peers use their own lists
CURVES = ((0.01, 1.0), (0.1, 5.0), (0.5, 20.0))
RUN = cases.sampled(0.01, 10_000, 1.0)
DELTA = cases.DELTA
RECORDS, FEW = 100_000, 20
LIBRARIES = ("ledgerwood", "dp-accounting", "opacus", "autodp", "prv-accountant")
IMPORTS = {
    "ledgerwood": "import ledgerwood.accounting", "dp-accounting": "import dp_accounting.rdp, dp_accounting.pld",
    "autodp": "import autodp.mechanism_zoo", "prv-accountant": "import prv_accountant",
}  # fmt: skip
STORED_MEMORY = {0.02: (5.4e3, 30e3)}  # dp-accounting, megabytes and ms, by multiplier
Line = dict[str, Any]


def _nudged(draws: tuple[Draw, ...], nudge: float) -> lw.Event:
    (family, parameter, rate, count), *rest = draws
    return cases.plan(((family, parameter * nudge, rate, count), *rest))


def _line(task: str, target: str = "", unit: str = "ms", **answers: Answer) -> Line:
    return {"task": task, "target": target, "unit": unit, **{k.replace("_", "-"): v for k, v in answers.items()}}


def _peers(questions: dict[str, tuple[str, dict[str, Any]]], repeat: int = 5) -> dict[str, Answer]:
    """Each peer's answer to its question (a name and what is given)."""
    return {
        peer: sides.ask(peer, [question(name, repeat=repeat, **given)])[0] for peer, (name, given) in questions.items()
    }


def _curves() -> list[Line]:
    lines = []
    for rate, multiplier in CURVES:
        draws = (("gaussian", multiplier, rate, 1),)
        mine = sides.ours(lambda nudge, draws=draws: _nudged(draws, nudge).renyi(ALL).tolist()[:1], runs=15)
        theirs = _peers({peer: ("renyi", {"draws": draws}) for peer in ("dp-accounting", "opacus", "autodp")})
        lines.append(_line(f"Renyi curve, 150 orders, {cases.label(draws)}", "2 ms", ledgerwood=mine) | theirs)
    draws = (("laplace", 1.0, 1.0, 1),)
    mine = sides.ours(lambda nudge: _nudged(draws, nudge).renyi(ALL).tolist()[:1], runs=15)
    theirs = _peers({peer: ("renyi", {"draws": draws}) for peer in ("dp-accounting", "autodp")})
    lines.append(_line("Renyi curve, 150 orders, L(1)", ledgerwood=mine) | theirs)
    for line in lines:
        for answer in line.values():
            if isinstance(answer, dict) and "value" in answer:
                answer["value"] = None  # thousands of figures that no table shows
    return lines


def _epsilons() -> list[Line]:
    def mine(method: Any, draws: tuple[Draw, ...] = RUN, *, both: bool = False) -> Answer:
        def run(nudge: float) -> Any:
            found = lw.price(_nudged(draws, nudge), method=method)
            return list(found.epsilon_interval(DELTA)) if both else found.epsilon(DELTA)

        return sides.ours(run, runs=7)

    given = {"draws": RUN, "delta": DELTA}
    by_renyi = _peers(dict.fromkeys(("dp-accounting", "opacus", "autodp"), ("renyi_epsilon", given)))
    steps = {
        "dp-accounting": {"step": 1e-4},
        "opacus": {"epsilon_error": 0.01},
        "prv-accountant": {"epsilon_error": 0.01},
    }
    by_losses = _peers({peer: ("losses_epsilon", given | option) for peer, option in steps.items()}, repeat=3)
    long = cases.sampled(1e-4, 10**8, 1.0)
    long_losses = _peers({"dp-accounting": ("losses_epsilon", {"draws": long, "delta": 1e-6, "step": 1e-4})}, repeat=1)
    plan = cases.label(RUN)
    return [
        _line(f"epsilon by Renyi, {plan}", ledgerwood=mine("renyi")) | by_renyi,
        _line(f"epsilon by losses, upper, {plan}", "50 ms", ledgerwood=mine("pld")) | by_losses,
        _line(f"epsilon by losses, both ends, {plan}", ledgerwood=mine("pld", both=True)) | by_losses,
        _line(f"epsilon, default method, {plan}", "50 ms", ledgerwood=mine("tightest")) | by_losses,
        _line(f"epsilon by losses, upper, {cases.label(long)}", ledgerwood=mine("pld", long)) | long_losses,
    ]


def _multipliers() -> list[Line]:
    def mine(method: Any) -> Answer:
        def run(nudge: float) -> float:
            budget = lw.Budget(epsilon=nudge, delta=DELTA, adjacency=cases.ADD_REMOVE)
            return lw.calibrate(lambda s: cases.plan(cases.sampled(0.01, 10_000, s)), budget, method=method)

        return sides.ours(run, runs=5)

    given = {"rate": 0.01, "count": 10_000, "epsilon": 1.0, "delta": DELTA}
    renyi = {peer: ("sigma", given | {"method": "renyi"}) for peer in ("dp-accounting", "opacus", "autodp")}
    losses = {peer: ("sigma", given | {"method": "losses"}) for peer in ("dp-accounting", "opacus", "prv-accountant")}
    return [
        _line("multiplier for epsilon 1, @0.01 x10000, by Renyi", ledgerwood=mine("renyi")) | _peers(renyi, repeat=3),
        _line("the same, default method; peers by losses", "150 ms", ledgerwood=mine("tightest"))
        | _peers(losses, repeat=3),
    ]


def _individuals() -> list[Line]:
    """Each record has its own sensitivity. Peers have no vectorised call: they are run on a few and extrapolated."""
    spread = np.geomspace(1.0, 20.0, FEW).tolist()  # multipliers: the noise over each record's own sensitivity

    def many(orders: list[float] | None) -> dict[str, Answer]:
        found = {}
        for peer in ("dp-accounting", "opacus", "autodp"):
            questions = [question("renyi", repeat=3, draws=[("gaussian", s, 0.01, 1)], orders=orders) for s in spread]
            answers = sides.ask(peer, questions)
            if any("error" in answer for answer in answers):
                found[peer] = next(answer for answer in answers if "error" in answer)
            else:
                ms = statistics.mean(answer["ms"] for answer in answers)
                found[peer] = {"value": None, "ms": ms * RECORDS, "extrapolated": True}
        return found

    def mine(orders: Any, records: int) -> Answer:
        sensitivities = np.random.default_rng(0).uniform(0.0, 1.0, records)

        def run(nudge: float) -> None:
            IndividualRenyi(event("gaussian", 0.01, nudge), orders).at(sensitivities)

        return sides.ours(run, runs=3)

    return [
        _line("1e5 individuals, all orders", "10 s", ledgerwood=mine(ALL, RECORDS)) | many(None),
        _line("1e5 individuals, order 8", ledgerwood=mine([8.0], RECORDS)) | many([8.0]),
        _line("1e6 individuals, order 8", "0.3 s", ledgerwood=mine([8.0], 10 * RECORDS)),
    ]


def _fresh(python: Path, script: str) -> Any:
    """What a fresh interpreter prints as JSON."""
    root = Path(__file__).parents[2]
    output = subprocess.run(
        [str(python), "-W", "ignore", "-c", script], check=True, capture_output=True, text=True, cwd=root
    )
    return json.loads(output.stdout)


def _imports() -> Line:
    answers = {}
    for library, statement in IMPORTS.items():
        mine = library == "ledgerwood"
        python = Path(sys.executable) if mine else peers.environment(library, sides.REQUIREMENTS[library])
        if python is None:
            answers[library] = {"error": "not installed"}
            continue
        script = f"import time; start = time.perf_counter(); {statement}; print(1e3 * (time.perf_counter() - start))"
        times = [_fresh(python, script) for _ in range(6)]
        answers[library] = {"value": None, "ms": statistics.median(times[1:])}
    return _line("import, fresh process", "350 ms") | answers


def _memory(slow: bool) -> list[Line]:
    lines = []
    for multiplier in (0.1, 0.02):
        draws = (("gaussian", multiplier, 1.0, 1),)
        script = (
            "import json, time\nfrom benchmarks.accounting import cases\nimport ledgerwood as lw\n"
            f"start = time.perf_counter()\nlw.price(cases.plan({draws!r}), method='pld').epsilon_interval({DELTA!r})\n"
            "ms = 1e3 * (time.perf_counter() - start)\n"
            "from benchmarks.accounting.peer_side.serve import peak_megabytes\n"
            "print(json.dumps({'value': peak_megabytes(), 'ms': ms}))"
        )
        mine = _fresh(Path(sys.executable), script)
        if multiplier in STORED_MEMORY and not slow:
            theirs = sides.stored(*STORED_MEMORY[multiplier])
        else:
            theirs = _peers({"dp-accounting": ("memory", {"draws": draws, "delta": DELTA, "step": 1e-4})}, repeat=1)[
                "dp-accounting"
            ]
        lines.append(
            _line(f"peak memory, {cases.label(draws)} by losses", "200 MB", "MB", ledgerwood=mine, dp_accounting=theirs)
        )
    return lines


def measure(*, slow: bool) -> list[Line]:
    """A record for each task."""
    return [*_curves(), *_epsilons(), *_multipliers(), *_individuals(), _imports(), *_memory(slow)]


def entry(line: Line, library: str) -> str:
    """A cell: a time, or megabytes with the time they took."""
    answer = line.get(library)
    if answer is None or "error" in answer:
        return sides.cell(answer, str)
    time = sides.milliseconds(answer) + ("~" if answer.get("extrapolated") else "")
    return time if line["unit"] == "ms" else sides.cell(answer, "{:.0f} MB".format) + f", {time}"


def show(console: Console, found: list[Line]) -> None:
    """Print the table."""
    table = Table(title="speed: warm medians; ~ extrapolated from 20 records; * stored, not run now")
    for column in ("task", "target", *LIBRARIES):
        table.add_column(column, justify="left" if column == "task" else "right")
    for line in found:
        table.add_row(line["task"], line["target"], *(entry(line, library) for library in LIBRARIES))
    console.print(table)
