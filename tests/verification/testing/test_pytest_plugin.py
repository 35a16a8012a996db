"""The pytest plugin: its fixtures, options and marker, in runs of their own."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification import assert_dp
from ledgerwood.verification.black_box import Audit

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[3]
PLUGIN = "ledgerwood.verification.pytest_plugin"
BUDGET = lw.Budget(epsilon=1.0, delta=0.0, adjacency=lw.Adjacency.ADD_REMOVE)


def right(dataset, n, rng):
    """Exact randomised response about one bit, epsilon 1."""
    truth = np.full(n, int(dataset[0]))
    return np.where(rng.random(n) < np.e / (1 + np.e), truth, 1 - truth)


def wrong(dataset, n, rng):
    """The same with epsilon 3."""
    truth = np.full(n, int(dataset[0]))
    return np.where(rng.random(n) < 1 / (1 + np.exp(-3)), truth, 1 - truth)


PAIR = (np.array([1]), np.array([0]))
PROGRAM = """
import numpy as np
import pytest
import ledgerwood as lw

PAIR = (np.array([1]), np.array([0]))
BUDGET = lw.Budget(epsilon=1.0, delta=0.0, adjacency=lw.Adjacency.ADD_REMOVE)

def responding(epsilon):
    def sampler(dataset, n, rng):
        truth = np.full(n, int(dataset[0]))
        return np.where(rng.random(n) < 1 / (1 + np.exp(-epsilon)), truth, 1 - truth)
    return sampler
"""


@pytest.fixture
def ran(pytester, monkeypatch):
    """A run of pytest on one file, with no other plugins and warnings as errors; what it printed."""

    def run(tests, *options, apart=False):
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        pytester.makepyfile(PROGRAM + tests)
        common = ("-p", PLUGIN, "-p", "no:cacheprovider", "--strict-markers", "-W", "error", "-q", *options)
        # In a process of its own where heavy modules are loaded: pytester forgets those of a run in this one.
        return pytester.runpytest_subprocess(*common) if apart else pytester.runpytest_inprocess(*common)

    return run


def test_a_claim_that_is_broken_is_a_failure_with_bound_event_and_pair():
    with pytest.raises(AssertionError) as raised:
        assert_dp(wrong, claim=BUDGET, pair=PAIR, n=20_000)
    text = str(raised.value)
    assert "the claim Budget(epsilon=1.0" in text
    assert "is refuted at alpha 0.001" in text
    bound = float(re.search(r"epsilon >= ([\d.]+) at delta 0", text)[1])
    assert 2.5 < bound <= 3.1
    assert "event: " in text
    assert "array([1]) and\narray([0])" in text


def test_a_claim_that_is_kept_returns_the_audit_and_the_same_one_each_time():
    first, second = (assert_dp(right, claim=BUDGET, pair=PAIR, n=20_000) for _ in range(2))
    assert isinstance(first, Audit)
    assert 0.8 < first.epsilon_lower <= 1.0
    assert first.epsilon_lower == second.epsilon_lower
    assert first.alpha == 1e-3
    other = assert_dp(right, claim=BUDGET, pair=PAIR, n=20_000, rng=np.random.default_rng(4))
    assert other.epsilon_lower != first.epsilon_lower
    with pytest.raises(InvalidParameter):
        assert_dp(right, claim=BUDGET, pair=PAIR, alpha=2.0)


@pytest.mark.slow  # a pytest of its own
def test_the_fixtures_in_a_run_of_their_own(ran):
    result = ran(
        """
def test_right(assert_dp):
    found = assert_dp(responding(0.5), claim=BUDGET, pair=PAIR)
    assert (found.alpha, found.bounds[0].samples) == (0.01, 2 * 5_000)

def test_wrong(assert_dp):
    assert_dp(responding(3.0), claim=BUDGET, pair=PAIR)

@pytest.mark.dp(samples=700, alpha=1e-6)
def test_marked(assert_dp):
    found = assert_dp(responding(0.5), claim=BUDGET, pair=PAIR)
    assert (found.alpha, found.bounds[0].samples) == (1e-6, 2 * 700)
    assert assert_dp(responding(0.5), claim=BUDGET, pair=PAIR, alpha=0.05, n=900).alpha == 0.05

def test_sensitivity(assert_sensitivity):
    assert_sensitivity(lambda x: np.clip(np.nan_to_num(x), 0, 1).sum(), claimed=1.0)

def test_sensitivity_of_nan(assert_sensitivity):
    assert_sensitivity(lambda x: np.clip(x, 0, 1).sum(), claimed=1.0)

def test_generators_are_the_tests_own(dp_rng):
    assert dp_rng.integers(2**62) == np.random.default_rng(list(WORDS)).integers(2**62)

@pytest.mark.dp(700)
def test_wrong_marker(assert_dp):
    pass
""".replace(
            "WORDS",
            "__import__('hashlib').sha256(b'5 test_the_fixtures_in_a_run_of_their_own.py"
            "::test_generators_are_the_tests_own').digest()",
        ),
        "--dp-samples=5000",
        "--dp-alpha=0.01",
        "--dp-seed=5",
        apart=True,
    )
    result.assert_outcomes(passed=4, failed=2, errors=1)
    result.stdout.fnmatch_lines(["*AssertionError: the claim Budget(epsilon=1.0*is refuted at alpha 0.01:*"])
    result.stdout.fnmatch_lines(["*AssertionError: sensitivity 1.0 (l2, add-remove) is refuted: inf times it*"])
    result.stdout.fnmatch_lines(["*the marker dp takes samples=... and alpha=..., no more*"])
    result.stdout.no_fnmatch_line("*assert_dp(sampler*")  # the library's own frames are hidden


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--dp-samples=0", "*--dp-samples=0 must be at least 1 (unit: outputs)*"),
        ("--dp-alpha=0.7", "*--dp-alpha=0.7 must be in (0, 0.5] (unit: probability)*"),
    ],
)
def test_options_outside_their_bounds_are_refused(ran, option, message):
    result = ran("def test_nothing():\n    pass\n", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


@pytest.mark.slow  # a pytest of its own
def test_it_shows_its_options_and_its_marker_and_works_beside_xdist(ran):
    shown = ran("", "--help").stdout
    shown.fnmatch_lines(["audits of differential privacy:", "*--dp-samples=N*", "*--dp-alpha=ALPHA*"])
    ran("", "--markers").stdout.fnmatch_lines(["@pytest.mark.dp(samples, alpha): *"])
    parallel = ran("def test_it(dp_rng):\n    assert dp_rng.random() < 1\n", "-p", "xdist", "-n", "1")
    parallel.assert_outcomes(passed=1)


@pytest.mark.slow  # a process of its own
def test_it_loads_nothing_heavy():
    program = f"import sys, {PLUGIN}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {"numba", "sklearn", "matplotlib", "hypothesis", "pandas", "narwhals"} & set(run.stdout.split())


@pytest.mark.slow  # a pytest of its own
def test_the_entry_point_is_named_as_the_module_so_that_both_ways_to_load_it_go_together(pytester, monkeypatch):
    """pytest refuses the same module under two names."""
    text = (ROOT / "pyproject.toml").read_text()
    point = f'"{PLUGIN}" = "{PLUGIN}"'
    assert f"[project.entry-points.pytest11]\n{point}\n" in text
    installed = pytester.mkdir("site") / "as_installed-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: as_installed\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{PLUGIN} = {PLUGIN}\n")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{installed.parent}")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    pytester.makepyfile("def test_it(dp_rng):\n    assert dp_rng.random() < 1\n")
    plain = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:hypothesispytest")
    for options in ((), ("-p", PLUGIN)):
        pytester.runpytest_subprocess(*plain, *options).assert_outcomes(passed=1)
    pytester.runpytest_subprocess(*plain, "-p", f"no:{PLUGIN}").assert_outcomes(errors=1)
