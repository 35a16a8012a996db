"""What every test shares: deterministic hypothesis, and the real data sets."""

import importlib
import os
import pkgutil
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

import ledgerwood

if TYPE_CHECKING:
    from ledgerwood.datasets import Dataset

settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", parent=settings.get_profile("deterministic"), derandomize=False, max_examples=2_000)
settings.load_profile(os.environ.get("LEDGERWOOD_HYPOTHESIS", "deterministic"))


# hypothesis tries the constants of every module that is loaded: load them all first, so that each run tries the same.
for _module in pkgutil.walk_packages(ledgerwood.__path__, "ledgerwood."):
    importlib.import_module(_module.name)


@pytest.fixture(scope="session")
def dataset() -> "Callable[[str], Dataset]":
    """Load a data set by name from disk; without its file the test skips, or fails where LEDGERWOOD_REQUIRE_DATA=1."""
    from ledgerwood.datasets import load
    from ledgerwood.errors import DataUnavailable

    def read(name: str) -> "Dataset":
        try:
            return load(name, fetch=False)
        except DataUnavailable as missing:
            if os.environ.get("LEDGERWOOD_REQUIRE_DATA") == "1":
                pytest.fail(f"LEDGERWOOD_REQUIRE_DATA=1, and {missing}")
            pytest.skip(str(missing))

    return read


@pytest.fixture(scope="session")
def peer() -> Callable[[str], ModuleType]:
    """Import a module of a peer library; without it the test skips and says so, or fails where CI is set."""

    def load(name: str) -> ModuleType:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a peer's import is its own affair
            if os.environ.get("CI"):
                return importlib.import_module(name)
            return pytest.importorskip(name, reason="peers are not installed: pip install -e '.[oracle]'")

    return load
