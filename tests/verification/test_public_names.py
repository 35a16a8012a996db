"""`ledgerwood.verification`: its names, and what they need."""

import subprocess
import sys
from pathlib import Path

import pytest

from ledgerwood import verification

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"numba", "sklearn", "matplotlib", "hypothesis", "pytest", "pandas"}


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT).stdout


@pytest.mark.parametrize("name", verification.__all__)
def test_every_name_is_there(name):
    assert getattr(verification, name) is not None
    assert name in dir(verification)


def test_every_late_name_is_public_and_listed_in_order():
    assert set(verification._LATE) <= set(verification.__all__)
    assert verification.__all__ == sorted(verification.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'ledgerwood\.verification' has no attribute 'prove'"):
        verification.prove


@pytest.mark.slow  # many replays and searches
def test_the_package_itself_loads_nothing_heavy():
    program = "import sys, ledgerwood.verification; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    assert not set(run(program).split()) & HEAVY


@pytest.mark.slow  # a process of its own
def test_what_needs_an_extra_says_so_and_the_rest_works_without():
    program = (
        "import sys\n"
        "for name in ('numba', 'sklearn', 'narwhals', 'hypothesis'):\n    sys.modules[name] = None\n"
        "import numpy as np\n"
        "from ledgerwood import verification as v\n"
        "print(v.neighbour_of(np.arange(3), np.arange(4)).change, v.removed((np.arange(3),), 0).gone)\n"
        "v.verify_ledger, v.errata, v.poisoning\n"
        "try:\n    v.replay\n"
        "except ImportError as error:\n    print(error)\n"
    )
    missing = "ledgerwood.verification.replay needs narwhals: pip install 'ledgerwood[trainers]'"
    assert run(program).splitlines() == ["added 0", missing]
