"""Answers questions in a peer's environment: a list of them in, a list of answers out, both JSON.

A question is {"ask": name, "given": {...}, "repeat": runs, "limit": seconds}. Its answer has "value" and "ms", the
median of the runs after a first one (of the first, where there is only one), or "error".
"""

import contextlib
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class TookTooLong(Exception):
    """A question met its limit."""


def _ring(_number: int, _frame: object) -> None:
    raise TookTooLong


def peak_megabytes() -> float:
    """Of this process since it began; getrusage would count what its parent held."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise NotImplementedError("no peak memory on this system")


def answer(answers: dict[str, Callable[..., Any]], question: dict[str, Any]) -> dict[str, Any]:
    seconds: list[float] = []
    repeat = question.get("repeat", 1)
    signal.signal(signal.SIGALRM, _ring)
    signal.alarm(question.get("limit", 0))
    value = None
    try:
        for _ in range(repeat + (repeat > 1)):
            start = time.perf_counter()
            value = answers[question["ask"]](**question["given"])
            seconds.append(time.perf_counter() - start)
    except TookTooLong:
        return {"error": f"over {question['limit']} s"}
    except Exception as error:  # noqa: BLE001  a peer's refusal is an answer, whatever its type
        return {"error": f"{type(error).__name__}: {error}"[:120]}
    finally:
        signal.alarm(0)
    return {"value": value, "ms": 1e3 * statistics.median(seconds[repeat > 1 :])}


def serve(answers: dict[str, Callable[..., Any]]) -> None:
    """Answer what stands on the standard input."""
    questions = json.load(sys.stdin)
    with contextlib.redirect_stdout(open(os.devnull, "w", encoding="utf-8")):  # noqa: PTH123
        found = [answer(answers, question) for question in questions]
    print(json.dumps(found))
