"""Processes that are killed at any point, and commits that fail: nothing is overspent, nothing acknowledged is lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow  # kills processes that spend
def test_killed_processes_lose_budget_at_most(url):
    """A small run of the benchmark, which is where the large one is."""
    program = [sys.executable, ROOT / "benchmarks" / "ledger_kills.py", "--url", url, "--json"]
    sizes = ["--processes", "4", "--grants", "64", "--kills", "8", "--rate", "0.1"]
    done = subprocess.run([*program, *sizes], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["violations"].values()) == {0}
    assert 1 <= found["random kills"] <= 8  # a fast machine may be done before all are due
    assert (found["grants"], found["epsilon"]) == (64, found["budget"])
    assert found["acknowledged"] <= 64
    assert sum(found["faults"].values()) > 0
