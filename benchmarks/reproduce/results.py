"""What studies found: read from and kept in docs, beside how it was measured."""

import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from benchmarks.measuring import keep
from benchmarks.reproduce.items import Found, Paper, Study

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "reproduction"


def machine() -> str:
    """The machine line of a run."""
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"numpy {np.__version__}, scikit-learn {sklearn.__version__}"
    )


def file_of(paper: Paper) -> Path:
    """Where a paper's runs, and the values that no other page owns, are kept."""
    return FOLDER / "results" / f"{paper.key}.json"


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def stored(paper: Paper) -> dict[str, Found]:
    """The values of each study that has been run, by its name."""
    own = _read(file_of(paper)).get("found", {})
    values = {}
    for study in paper.studies:
        source = own if study.kept is None else _read(DOCS / study.kept)
        if study.name in source:
            values[study.name] = source[study.name]
    return values


def runs(paper: Paper) -> Mapping[str, Mapping[str, Any]]:
    """Seeds, seconds and machine of each study's stored run, by its name."""
    found: dict[str, Mapping[str, Any]] = _read(file_of(paper)).get("runs", {})
    return found


def fits(found: Any) -> set[int]:
    """How many fits the means in stored values are over: whatever they call "splits" or "count", at any depth."""
    if isinstance(found, Mapping):
        own = {int(value) for key, value in found.items() if key in {"splits", "count"} and isinstance(value, int)}
        return own.union(*map(fits, found.values()))
    return set().union(*map(fits, found)) if isinstance(found, list) else set()


def store(paper: Paper, study: Study, found: Found, *, seeds: int, seconds: float) -> None:
    """Keep a full run: its values where their owner is, and how they were measured beside the paper's others."""
    path = file_of(paper)
    path.parent.mkdir(parents=True, exist_ok=True)
    run = {"seeds": seeds, "seconds": round(seconds, 1), "machine": machine()}
    if study.kept is None:
        keep(path, {"found": {study.name: found}, "runs": {study.name: run}})
    else:
        keep(DOCS / study.kept, {study.name: found})
        keep(path, {"runs": {study.name: run}})
