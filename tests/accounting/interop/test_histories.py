"""Histories of DP-SGD, TF Privacy's statements and diffprivlib's spends, as events."""

import math
import textwrap
from fractions import Fraction

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.interop import from_diffprivlib, from_sgd_history, read_tf_privacy_statement
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

ADD_REMOVE, ZERO_OUT, REPLACE_ONE = lw.Adjacency.ADD_REMOVE, lw.Adjacency.ZERO_OUT, lw.Adjacency.REPLACE_ONE
# what TF Privacy 0.9.0 prints for 60,000 rows, batches of 256, 15 epochs, multiplier 1.1, delta 1e-5, no microbatches
STATEMENT = """\
DP-SGD performed over 60000 examples with 256 examples per iteration, noise
multiplier 1.1 for 15 epochs without microbatching, and no bound on number of
examples per user.

This privacy guarantee protects the release of all model checkpoints in addition
to the final model.

Example-level DP with add-or-remove-one adjacency at delta = 1e-05 computed with
RDP accounting:
    Epsilon with each example occurring once per epoch:        21.901
    Epsilon assuming Poisson sampling (*):                      1.281
"""


def gaussian(multiplier, adjacency=ADD_REMOVE):
    return lw.GaussianEvent(noise_multiplier=multiplier, adjacency=adjacency)


def test_a_history_is_its_stretches():
    first = lw.Repeated(lw.PoissonSampled(gaussian(1.1), sampling_rate=0.01), count=1000)
    second = lw.Repeated(gaussian(2.0), count=3)
    assert from_sgd_history([(1.1, 0.01, 1000)], adjacency=ADD_REMOVE, exact_rates=True) == first
    both = from_sgd_history([(1.1, 0.01, 1000), (2.0, 1.0, 3), (1.0, 0.0, 5), (0.0, 0.1, 0)], adjacency=ADD_REMOVE,
                            exact_rates=True)  # fmt: skip
    assert both == lw.Composed((first, second))
    assert from_sgd_history([(2.0, 1.0, 3)], adjacency=ADD_REMOVE) == second
    (replaced,) = [part for part, _ in from_sgd_history([(1.0, 0.5, 1)], adjacency=REPLACE_ONE).draws()]
    assert replaced.event == gaussian(0.5, REPLACE_ONE)


@pytest.mark.parametrize("rate", [0.1, 0.01, 1e-4, 1 / 3])
def test_a_rate_is_that_of_the_coins_which_are_tossed(rate):
    """Of the 2^24 equally likely float32 coins those below the float32 rate take the row."""
    (step,) = [part for part, _ in from_sgd_history([(1.0, rate, 1)], adjacency=ADD_REMOVE).draws()]
    coins = np.arange(math.ceil(rate * 2**24) + 5, dtype=np.float32) * np.float32(2**-24)
    taken = Fraction(int((coins < np.float32(rate)).sum()), 2**24)
    assert max(taken, Fraction(rate)) <= Fraction(step.sampling_rate) <= taken + Fraction(2, 2**24)


@pytest.mark.parametrize(
    ("history", "error", "said"),
    [
        ([], UnsupportedEvent, "without steps"),
        ([(0.0, 0.1, 1)], UnsupportedEvent, "steps without noise"),
        ([(1.0, 1.5, 1)], InvalidParameter, r"sampling_rate=1.5 must be in \[0, 1\]"),
        ([(1.0, 0.1)], InvalidParameter, "must be .noise multiplier, sampling rate, steps."),
        ([(1.0, 0.1, 2.5)], InvalidParameter, "steps=2.5"),
        ([(math.nan, 0.1, 2)], InvalidParameter, "noise_multiplier=nan"),
        ("rdp", InvalidParameter, "not one text"),
    ],
)
def test_a_history_that_is_none_is_refused(history, error, said):
    with pytest.raises(error, match=said):
        from_sgd_history(history, adjacency=ADD_REMOVE)


def test_a_statement_is_read():
    found = read_tf_privacy_statement(STATEMENT)
    assert (found.rows, found.batch_size, found.epochs, found.noise_multiplier) == (60_000, 256, 15.0, 1.1)
    assert (found.delta, found.microbatching, found.rows_per_user, found.accounting) == (1e-5, False, None, "RDP")
    plan = found.plan(sampling="poisson")
    assert plan == lw.sgd_plan(rows=60_000, batch_size=256, epochs=15, noise_multiplier=1.1, sampling="poisson")
    assert lw.price(plan.event, method="renyi").epsilon(1e-5) == pytest.approx(1.281, abs=6e-4)
    # "each example occurring once per epoch" is the cycle; their orders are few
    cycle = found.plan(sampling="cyclic", adjacency=ZERO_OUT)
    assert 20.5 < lw.price(cycle.event).epsilon(1e-5) < lw.price(cycle.event, method="renyi").epsilon(1e-5) < 21.9015


def test_microbatches_double_what_a_row_moves():
    text = STATEMENT.replace("without micro", "with micro").replace(
        "no bound on number of\nexamples per user", "at most 4\nexamples per user"
    )
    found = read_tf_privacy_statement(textwrap.indent(text, "  "))
    assert (found.microbatching, found.rows_per_user) == (True, 4)
    plan = found.plan(sampling="cyclic", adjacency=ZERO_OUT, per_row=True)
    assert plan.noise_multiplier == 0.55
    assert plan.event == lw.Repeated(gaussian(0.55, ZERO_OUT), count=15)
    replaced = found.plan(sampling="cyclic", adjacency=REPLACE_ONE, per_row=True)
    assert replaced.event == lw.Repeated(gaussian(0.55, REPLACE_ONE), count=15)


def microbatch_sum(rows, size):
    """A sum of the groups' clipped means, at clipping norm 1."""
    groups = [rows[start : start + size] for start in range(0, len(rows), size)]
    return sum(max(-1.0, min(1.0, sum(group) / len(group))) for group in groups)


def test_one_more_row_moves_microbatches_by_any_number_of_norms():
    """A row at the head shifts all others to new groups; a row that is set to zero moves one group, by 2 at most."""
    rows = [10.0, 10.0, -1.0, -1.0] * 10
    whole = microbatch_sum(rows, 2)
    assert abs(microbatch_sum([0.0, *rows], 2) - whole) >= 18
    moves = [abs(microbatch_sum([*rows[:i], 0.0, *rows[i + 1 :]], 2) - whole) for i in range(len(rows))]
    assert max(moves) <= 2
    assert abs(microbatch_sum([-1e3, 1e3 - 9], 2) - microbatch_sum([0.0, 1e3 - 9], 2)) == 2  # attained


@pytest.mark.parametrize(("sampling", "adjacency"), [
    ("poisson", None), ("poisson", ADD_REMOVE), ("poisson", ZERO_OUT), ("poisson", REPLACE_ONE), ("cyclic", None),
    ("cyclic", ADD_REMOVE), ("allocation", ZERO_OUT), ("fixed", REPLACE_ONE),
])  # fmt: skip
def test_microbatches_without_a_bound_are_refused(sampling, adjacency):
    found = read_tf_privacy_statement(STATEMENT.replace("without micro", "with micro"))
    with pytest.raises(UnsupportedEvent, match="shifts all later rows to other groups"):
        found.plan(sampling=sampling, adjacency=adjacency)


def test_a_plan_is_of_one_row_and_it_is_said():
    text = STATEMENT.replace("no bound on number of\nexamples per user", "at most 4\nexamples per user")
    found = read_tf_privacy_statement(text)
    with pytest.raises(UnsupportedEvent, match="rows_per_user=4.*per_row=True.*user_sampled"):
        found.plan(sampling="poisson")
    assert found.plan(sampling="poisson", per_row=True) == read_tf_privacy_statement(STATEMENT).plan(sampling="poisson")
    once = read_tf_privacy_statement(text.replace("at most 4", "at most 1"))
    assert once.plan(sampling="poisson").noise_multiplier == 1.1


@pytest.mark.parametrize("text", ["", "DP-SGD", STATEMENT.replace("1.1 for", "x for"), "a" * 30_000, 5,
                                  STATEMENT.replace("256", "0"), STATEMENT.replace("1e-05", "-1")])  # fmt: skip
def test_a_text_that_is_no_statement_is_refused(text):
    with pytest.raises(InvalidParameter, match=r"text|batch_size|delta"):
        read_tf_privacy_statement(text)


def accountant(*spends):
    """A stand-in of diffprivlib's class, which no scikit-learn from 1.8 on can import (benchmarks.bridges has it)."""
    cls = type("BudgetAccountant", (), {"__module__": "diffprivlib.accountant", "spent_budget": list(spends)})
    return cls()


def test_spends_are_stated_events():
    spent = accountant((0.5, 0), (0.1, 1e-6), (0.5, 0), (0.0, 1e-7), (0, 0))
    assert from_diffprivlib(spent, adjacency=REPLACE_ONE) == lw.Composed(
        (
            lw.Repeated(lw.PureEvent(epsilon=0.5, adjacency=REPLACE_ONE), count=2),
            lw.ApproximateEvent(epsilon=0.1, delta=1e-6, adjacency=REPLACE_ONE),
            lw.ApproximateEvent(epsilon=1e-100, delta=1e-7, adjacency=REPLACE_ONE),
        )
    )
    many = from_diffprivlib(accountant(*[(0.05, 0)] * 100), adjacency=REPLACE_ONE)
    assert lw.price(many).epsilon(0.0) == pytest.approx(5.0)
    assert lw.price(many).epsilon(1e-3) < 2.0


@pytest.mark.parametrize(
    ("spent", "error", "said"),
    [
        (accountant(), UnsupportedEvent, "has spent nothing"),
        (accountant((math.inf, 0)), UnsupportedEvent, "epsilon=inf"),
        (accountant((1.0, 1.0)), UnsupportedEvent, "delta=1.0"),
        (accountant((-1.0, 0)), InvalidParameter, "epsilon=-1.0"),
        ([(0.5, 0)], InvalidParameter, "must be a diffprivlib.BudgetAccountant"),
    ],
)
def test_spends_without_a_cost_are_refused(spent, error, said):
    with pytest.raises(error, match=said):
        from_diffprivlib(spent, adjacency=REPLACE_ONE)
