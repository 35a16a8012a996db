"""Both sides of a table: ours, run here, and the peers, asked in their own environments."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import peers

Answer = dict[str, Any]
"""{"value", "ms"}, with "stored" where it was measured before; or {"error"}."""

REQUIREMENTS = {
    "dp-accounting": ("dp-accounting==0.6.0",),
    "opacus": ("--no-deps", "opacus==1.6.0", "numpy", "scipy"),
    "autodp": ("autodp==0.2.3.1",),
    "prv-accountant": ("prv-accountant==0.2.0",),
}
_SIDES = Path(__file__).parent / "peer_side"
NOT_RUN: Answer = {"error": "not run"}


def question(ask: str, *, repeat: int = 1, limit: int = 60, **given: Any) -> dict[str, Any]:
    """One question of peer_side/serve.py; `limit` in seconds."""
    return {"ask": ask, "given": given, "repeat": repeat, "limit": limit}


def ask(peer: str, questions: list[dict[str, Any]]) -> list[Answer]:
    """The peer's answers, in one process; errors where it is not installed."""
    found = peers.run(peer, REQUIREMENTS[peer], _SIDES / f"{peer.replace('-', '_')}_side.py", questions)
    return [{"error": "not installed"}] * len(questions) if found is None else list(found)


def versions() -> dict[str, str]:
    """What is installed in each peer's environment, with its numpy and scipy."""
    found = {}
    for peer, requirements in REQUIREMENTS.items():
        script = (
            "import importlib.metadata as m, json\n"
            f"print(json.dumps([m.version(name) for name in ({peer!r}, 'numpy', 'scipy')]))"
        )
        answer = peers.run(peer, requirements, script)
        found[peer] = "not installed" if answer is None else "{} (numpy {}, scipy {})".format(*answer)
    return found


def ours(call: Callable[[float], Any], *, runs: int = 1) -> Answer:
    """Our value and the median of some runs in ms, the first of them not counted (unless it is the only one).

    `call` takes a factor next to 1, different in each run, to put on a parameter: no run finds its answer in a cache.
    """
    seconds, value = [], None
    try:
        for i in reversed(range(runs + (runs > 1))):
            start = time.perf_counter()
            value = call(1.0 + 1e-13 * i)
            seconds.append(time.perf_counter() - start)
    except Exception as error:  # noqa: BLE001  a refusal is an answer, whatever its type
        return {"error": f"{type(error).__name__}: {error}"[:120]}
    return {"value": value, "ms": 1e3 * statistics.median(seconds[runs > 1 :])}


def stored(value: Any, ms: float | None = None) -> Answer:
    """A figure measured before, and marked so."""
    return {"value": value, "ms": ms, "stored": True}


def cell(answer: Answer | None, form: Callable[[Any], str]) -> str:
    """A table's cell: "*" marks a stored figure, "-" what the library does not offer."""
    if answer is None or "NotImplementedError" in answer.get("error", ""):
        return "-"
    if "error" in answer:
        return str(answer["error"]).split(":")[0]
    return form(answer["value"]) + ("*" if answer.get("stored") else "")


def milliseconds(answer: Answer | None) -> str:
    """The time of an answer, "" where there is none."""
    if answer is None or answer.get("ms") is None:
        return ""
    return span(answer["ms"]) + ("*" if answer.get("stored") else "")


def span(ms: float) -> str:
    """Milliseconds below a second, else seconds."""
    return f"{ms:.2g} ms" if ms < 9.95 else f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.3g} s"
