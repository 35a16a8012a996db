"""The command line's arithmetic: sigma and price agree with the library, with closed forms, and refuse clearly."""

import json
import math
import subprocess
import sys
from fractions import Fraction

import pytest
from scipy.stats import norm
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood.cli.commands import app
from ledgerwood.pages.values import plain
from ledgerwood.report.noise import NoisySteps

RUNNER = CliRunner()
COMMANDS = ["sigma", "price", "plan", "train", "predict", "ledger", "errata", "demo"]


def run(*arguments):
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


def answer(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def gaussian_delta(epsilon, mu):
    """Balle and Wang 2018, Theorem 8, for one Gaussian of multiplier 1 / mu."""
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def test_help_names_every_command():
    result = run("--help")
    assert result.exit_code == 0
    assert all(command in result.stdout for command in COMMANDS)


@pytest.mark.slow_after(5)  # trains and checks by the command line
@pytest.mark.parametrize("command", [*COMMANDS, ("ledger", "show"), ("ledger", "verify")])
def test_every_command_has_help(command):
    result = run(*([command] if isinstance(command, str) else command), "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout


def test_sigma_of_one_gaussian_is_the_closed_form():
    found = answer("sigma", "--epsilon", 1, "--delta", 1e-5)
    assert gaussian_delta(1.0, 1.0 / found["noise_multiplier"]) == pytest.approx(1e-5, rel=1e-6)
    assert found["epsilon"] <= 1.0
    assert found["certified"] is True


def test_steps_of_a_full_batch_scale_by_the_square_root():
    one = answer("sigma", "--epsilon", 1, "--delta", 1e-5)["noise_multiplier"]
    many = answer("sigma", "--epsilon", 1, "--delta", 1e-5, "--steps", 64)["noise_multiplier"]
    assert many == pytest.approx(8.0 * one, rel=1e-6)


def test_rows_batches_and_epochs_make_rate_and_steps():
    sizes = ("--rows", 60_000, "--batch-size", 256, "--epochs", 1.5)
    found = answer("sigma", "--epsilon", 2, "--delta", 1e-6, *sizes)
    assert Fraction(found["sampling_rate"]) >= Fraction(256, 60_000)
    assert found["sampling_rate"] == pytest.approx(256 / 60_000, rel=1e-15)
    assert found["steps"] == math.ceil(1.5 * 60_000 / 256) == 352
    assert "351.56, rounded up" in found["computed"]
    same = answer("sigma", "--epsilon", 2, "--delta", 1e-6, "--sampling-rate", found["sampling_rate"], "--steps", 352)
    assert same["noise_multiplier"] == found["noise_multiplier"]
    priced = answer("price", "--noise-multiplier", found["noise_multiplier"], "--delta", 1e-6, *sizes)
    assert priced["epsilon"] == found["epsilon"] <= 2.0


@pytest.mark.parametrize(
    ("rows", "batch", "epochs", "steps"),
    [(100, 10, 0.1, 1), (100, 10, 0.3, 3), (1000, 1000, 7, 7), (3, 1, 1, 3), (10, 3, 1, 4), (100, 7, 0.7, 10)],
)
def test_steps_are_rounded_up_from_exact_numbers(rows, batch, epochs, steps):
    """.1 and .3 are no floats: a product of floats would be rounded up to one step more."""
    found = NoisySteps.of(sampling_rate=None, steps=None, rows=rows, batch_size=batch, epochs=epochs)
    assert found.count == steps
    assert Fraction(batch, rows) <= Fraction(found.sampling_rate) <= 1


def test_the_sampler_that_the_figures_are_for_is_named():
    sizes = ("--rows", 1000, "--batch-size", 10, "--epochs", 1)
    poisson = answer("sigma", "--epsilon", 1, *sizes)
    for words in ("Poisson", "independently", "shuffles", "do not hold", "how-to/noise-for-a-target"):
        assert words in poisson["sampler"]
    assert answer("price", "--noise-multiplier", 3, "--delta", 1e-6)["sampler"].startswith("none: every step")
    assert "true positive rate is at most" in poisson["risk"]
    assert poisson["risk"] == lw.accounting.risk.in_words(
        lw.Budget(epsilon=1.0, delta=poisson["delta"], adjacency=lw.Adjacency.ADD_REMOVE)
    )


@pytest.mark.slow_after(2)  # an allocation is priced twice
@pytest.mark.parametrize(
    ("sampling", "steps", "words"),
    [
        ("fixed", 100, "draws 30 of 1000 rows without replacement"),
        ("cyclic", 102, "no amplification"),
        ("allocation", 99, "exactly one of 33 steps"),
    ],
)
def test_another_sampler_has_another_cost_and_is_said(sampling, steps, words):
    sizes = ("--rows", 1000, "--batch-size", 30, "--epochs", 3, "--noise-multiplier", 2, "--delta", 1e-6)
    found = answer("price", *sizes, "--sampling", sampling)
    plan = lw.sgd_plan(rows=1000, batch_size=30, epochs=3, noise_multiplier=2.0, sampling=sampling)
    assert found["epsilon"] == lw.price(plan.event).epsilon(1e-6) != answer("price", *sizes)["epsilon"]
    assert (found["sampling"], found["steps"], found["adjacency"]) == (sampling, steps, plan.adjacency.value)
    assert words in found["sampler"]
    assert ("multiplier_is" in found) is (sampling == "fixed")


def test_a_sampler_describes_a_training():
    result = run("sigma", "--epsilon", 1, "--delta", 1e-5, "--steps", 3, "--sampling", "fixed")
    assert "give --rows, --batch-size and --epochs, too" in " ".join(result.stderr.replace("│", " ").split())
    refused = run("sigma", "--epsilon", 1, "--rows", 100, "--batch-size", 20, "--epochs", 1, "--sampling", "fixed",
                  "--adjacency", "add-remove")  # fmt: skip
    assert "--adjacency='add-remove' has no bound for --sampling='fixed'" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(("rows", "delta"), [(1, 1e-5), (1000, 1e-5), (10_000, 1e-6), (60_000, 1e-7), (10**9, 1e-11)])
def test_a_delta_is_suggested_for_a_public_number_of_rows_and_said(rows, delta):
    found = answer("price", "--noise-multiplier", 5, "--rows", rows, "--batch-size", rows, "--epochs", 1)
    assert found["delta"] == delta <= 0.01 / rows or rows == 1
    assert "was chosen for you" in found["delta_is"]
    assert str(rows) in found["delta_is"]
    given = answer("price", "--noise-multiplier", 5, "--delta", delta)
    assert given["epsilon"] == found["epsilon"]
    assert "delta_is" not in given


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "give --delta, a probability far below 1 / (number of rows)"),
        (("--rows", 100), "--batch-size and --epochs must be given, too"),
        (("--delta", 1e-5, "--epochs", 3), "--rows and --batch-size must be given, too"),
        (("--rows", 100, "--batch-size", 10, "--epochs", 1, "--steps", 4), "--steps is computed from --rows"),
        (("--rows", 100, "--batch-size", 10, "--epochs", 1, "--sampling-rate", 1.0), "--sampling-rate is computed"),
    ],
)
@pytest.mark.parametrize("command", [("sigma", "--epsilon", 1), ("price", "--noise-multiplier", 1)])
def test_half_of_a_description_and_two_of_them_are_wrong_usage(command, options, words):
    result = run(*command, *options)
    said = " ".join(result.stderr.replace("│", " ").split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in said or (command[0] == "price" and not options and "give --delta to get epsilon" in said)


def test_price_is_the_inverse_of_sigma():
    options = ("--sampling-rate", 0.01, "--steps", 100)
    sigma = answer("sigma", "--epsilon", 0.5, "--delta", 1e-6, *options)["noise_multiplier"]
    epsilon = answer("price", "--noise-multiplier", sigma, "--delta", 1e-6, *options)["epsilon"]
    assert epsilon <= 0.5
    assert epsilon == pytest.approx(0.5, rel=1e-4)  # composed losses: 1e-5 in the multiplier


def test_price_gives_delta_at_an_epsilon():
    found = answer("price", "--noise-multiplier", 2, "--epsilon", 0.7)
    assert found["delta"] == pytest.approx(gaussian_delta(0.7, 0.5), rel=1e-9)


def test_price_says_what_an_attacker_can_do():
    found = answer("price", "--noise-multiplier", 2, "--delta", 1e-5, "--false-positive-rate", 0.01)
    power = norm.sf(norm.isf(0.01) - 0.5)
    assert found["advantage"] == pytest.approx(2 * norm.cdf(0.25) - 1, rel=1e-9)
    assert found["true_positive_rate"] == pytest.approx(power, rel=1e-5)
    assert found["belief_at_even_odds"] == pytest.approx(power / (power + 0.01), rel=1e-5)


def test_price_explains_itself():
    event = lw.Repeated(lw.GaussianEvent(noise_multiplier=2.0, adjacency=lw.Adjacency.ADD_REMOVE), count=3)
    options = ("price", "--noise-multiplier", 2, "--steps", 3, "--delta", 1e-5, "--explain")
    assert answer(*options)["explanation"] == lw.price(event).explain(1e-5)
    result = run(*options)
    assert "error budget" in result.stdout
    assert "meaning" in result.stdout


def test_laplace_noise_is_pure():
    found = answer("price", "--noise", "laplace", "--noise-multiplier", 4, "--steps", 3, "--delta", 0)
    assert found["epsilon"] == pytest.approx(0.75, rel=1e-12)


def test_adjacency_is_passed_on():
    found = answer("price", "--noise-multiplier", 2, "--delta", 1e-5, "--adjacency", "replace-one")
    assert found["adjacency"] == "replace-one"


def test_the_table_says_what_the_json_says():
    result = run("price", "--noise-multiplier", 2, "--epsilon", 0.7)
    assert result.exit_code == 0
    assert plain(gaussian_delta(0.7, 0.5)) in result.stdout


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (1e-5, "1e-05"),
        (0.1234561, "0.123457"),
        (5.772718009861663, "5.77272"),
        (0.9999999999965452, "1"),
        (123456.7, "123457"),
        (math.inf, "inf"),
        (3, "3"),
        (True, "yes"),
        (None, "-"),
        ("[bold]", "[bold]"),
    ],
)
def test_numbers_are_shown_rounded_up(value, text):
    assert plain(value) == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("price", "--noise-multiplier", 1, "--delta", 1e-5, "--false-positive-rate", 2),
            "--false-positive-rate=2.0 must be in [0, 1] (unit: probability)",
        ),
        (("sigma", "--epsilon", -1, "--delta", 1e-5), "epsilon=-1.0 must be > 0 (unit: nats)"),
        (("sigma", "--epsilon", "nan", "--delta", 1e-5), "epsilon=nan must be a finite real number (unit: nats)"),
        (("sigma", "--epsilon", 1, "--delta", 1), "delta=1.0 must be in [0, 1) (unit: probability)"),
        (("sigma", "--epsilon", 1, "--delta", 0), "delta=0.0 (unit: probability)"),
        (
            ("sigma", "--epsilon", 1, "--delta", 1e-5, "--sampling-rate", 1.5),
            "--sampling-rate=1.5 must be in (0, 1] (unit: probability",
        ),
        (
            ("sigma", "--epsilon", 1, "--rows", 100, "--batch-size", 200, "--epochs", 1),
            "--batch-size=200 must be <= --rows=100 (unit: rows)",
        ),
        (("sigma", "--epsilon", 1, "--rows", 100, "--batch-size", 20, "--epochs", 0), "--epochs=0.0 must be > 0"),
        (("sigma", "--epsilon", 1, "--delta", 1e-5, "--steps", 0), "--steps=0 must be a whole number >= 1"),
        (("price", "--noise-multiplier", 0, "--delta", 1e-5), "--noise-multiplier=0.0 must be > 0"),
        (
            ("price", "--noise-multiplier", 1, "--delta", 1e-5, "--sampling-rate", 0.1, "--adjacency", "replace-one"),
            "take --adjacency add-remove",
        ),
    ],
)
def test_refusals_go_to_standard_error_with_code_one(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("sigma", "--epsilon", 1),
        ("sigma", "--epsilon", "one", "--delta", 1e-5),
        ("price", "--noise-multiplier", 1),
        ("price", "--noise-multiplier", 1, "--epsilon", 1, "--delta", 1e-5),
        ("price", "--noise-multiplier", 1, "--delta", 1e-5, "--adjacency", "bounded"),
        ("demo", "--dataset", "iris"),
        ("ledger", "show", "no-such-file"),
        ("nonsense",),
    ],
)
def test_wrong_usage_is_code_two(arguments):
    assert run(*arguments).exit_code == 2


@pytest.mark.slow  # trains and checks by the command line
def test_runs_as_a_console_script():
    program = "import sys; from ledgerwood.cli.commands import main; sys.argv = ['ledgerwood', *sys.argv[1:]]; main()"
    finished = subprocess.run(
        [sys.executable, "-c", program, "price", "--noise-multiplier", "-3", "--delta", "1e-5"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1
    assert finished.stderr.startswith("InvalidParameter: --noise-multiplier=-3.0")


@pytest.mark.slow  # trains and checks by the command line
def test_a_missing_extra_says_how_to_get_it():
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "from ledgerwood.cli.commands import main; sys.argv = ['ledgerwood', 'demo']; main()"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 1
    assert "pip install 'ledgerwood[trainers]'" in finished.stderr


def test_public_names_and_command_line_speak_of_the_same_price():
    event = lw.Repeated(lw.GaussianEvent(noise_multiplier=3.0, adjacency=lw.Adjacency.ADD_REMOVE), count=7)
    assert answer("price", "--noise-multiplier", 3, "--steps", 7, "--delta", 1e-6)["epsilon"] == lw.price(
        event
    ).epsilon(1e-6)
