"""A pytest plugin: `assert_dp` and `assert_sensitivity` as fixtures; seeds, samples and alpha by the command line.

It is loaded with every run of pytest where ledgerwood is installed, so that it imports no more than the package itself:
no trainers, no hypothesis, no audit before a fixture is asked for. `-p no:ledgerwood.verification.pytest_plugin` leaves
it out. docs/how-to/test-your-mechanism.md shows it.

PYTEST_DONT_REWRITE: there is no assertion in here, and pytest warns of a plugin that was imported before it could be
rewritten.
"""

import functools
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import numpy as np

_SAMPLES = 100_000
_ALPHA = 1e-3


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the command line."""
    group = parser.getgroup("ledgerwood", "audits of differential privacy")
    group.addoption(
        "--dp-samples", type=int, default=_SAMPLES, metavar="N",
        help=f"assert_dp: outputs of the final test are 2 N (default: {_SAMPLES})",
    )  # fmt: skip
    group.addoption(
        "--dp-alpha", type=float, default=_ALPHA, metavar="ALPHA",
        help=f"assert_dp: probability that a mechanism that is right fails a test (default: {_ALPHA:g})",
    )  # fmt: skip
    group.addoption(
        "--dp-seed", type=int, default=0, metavar="SEED",
        help="dp_rng: each test has its own generator, seeded by this number and its name (default: 0)",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """The marker, and the bounds of the options."""
    config.addinivalue_line(
        "markers", "dp(samples, alpha): what assert_dp takes in this test, in place of --dp-samples and --dp-alpha"
    )
    _require(config.getoption("--dp-samples"), config.getoption("--dp-alpha"), "--dp-samples", "--dp-alpha")


@pytest.fixture
def dp_rng(request: pytest.FixtureRequest) -> "np.random.Generator":
    """A generator of the test's own: the same one in every run, and no other test's."""
    import numpy as np

    words = hashlib.sha256(f"{request.config.getoption('--dp-seed')} {request.node.nodeid}".encode()).digest()
    return np.random.default_rng(list(words))


@pytest.fixture
def assert_dp(request: pytest.FixtureRequest, dp_rng: "np.random.Generator") -> Callable[..., Any]:
    """`ledgerwood.verification.assert_dp` with this test's samples, alpha and generator; each can be given again."""
    from ledgerwood.verification import assert_dp as function

    config = request.config
    samples, alpha = _marked(request.node, config.getoption("--dp-samples"), config.getoption("--dp-alpha"))
    return functools.partial(function, n=samples, alpha=alpha, rng=dp_rng)


@pytest.fixture
def assert_sensitivity(dp_rng: "np.random.Generator") -> Callable[..., Any]:
    """`ledgerwood.verification.assert_sensitivity` with this test's generator."""
    from ledgerwood.verification import assert_sensitivity as function

    return functools.partial(function, rng=dp_rng)


def _marked(node: pytest.Item, samples: int, alpha: float) -> tuple[int, float]:
    marker = node.get_closest_marker("dp")
    if marker is None:
        return samples, alpha
    if marker.args or set(marker.kwargs) - {"samples", "alpha"}:
        raise pytest.UsageError(f"{node.nodeid}: the marker dp takes samples=... and alpha=..., no more")
    samples, alpha = marker.kwargs.get("samples", samples), marker.kwargs.get("alpha", alpha)
    _require(samples, alpha, f"{node.nodeid}: samples", f"{node.nodeid}: alpha")
    return samples, alpha


def _require(samples: int, alpha: float, first: str, second: str) -> None:
    if samples < 1:
        raise pytest.UsageError(f"{first}={samples!r} must be at least 1 (unit: outputs)")
    if not 0.0 < alpha <= 0.5:
        raise pytest.UsageError(f"{second}={alpha!r} must be in (0, 0.5] (unit: probability)")
