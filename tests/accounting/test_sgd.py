"""A plan for SGD: its event is the one its sampler has, what is rounded costs more, and its words say which sampler."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood.accounting.sgd import Sampling
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter

ADD_REMOVE, ZERO_OUT, REPLACE_ONE = lw.Adjacency.ADD_REMOVE, lw.Adjacency.ZERO_OUT, lw.Adjacency.REPLACE_ONE
SIZE = {"rows": 1000, "batch_size": 30, "epochs": 2.5}
RATE = math.nextafter(0.03, 1.0)  # .03 itself is below 3 / 100
SAMPLINGS = ("poisson", "allocation", "fixed", "cyclic")


def plan(sampling="poisson", **changes):
    return lw.sgd_plan(**{**SIZE, "noise_multiplier": 1.2, "sampling": sampling, **changes})


def gaussian(multiplier, adjacency=ADD_REMOVE):
    return lw.GaussianEvent(noise_multiplier=multiplier, adjacency=adjacency)


def test_the_samplers_here_are_all():
    assert set(SAMPLINGS) == set(Sampling.__args__)


def test_each_sampler_has_its_event():
    step = gaussian(1.2)
    assert plan("poisson").event == lw.Repeated(lw.PoissonSampled(step, sampling_rate=RATE), count=84)
    assert plan("allocation").event == lw.Repeated(lw.RandomAllocation(step, selected=1, steps=33), count=3)
    drawn = lw.FixedSizeSampled(gaussian(0.6, REPLACE_ONE), sample_size=30, population=1000)
    assert plan("fixed").event == lw.Repeated(drawn, count=84)
    assert plan("cyclic").event == lw.Repeated(step, count=3)
    assert [plan(each).steps for each in SAMPLINGS] == [84, 83, 84, 85]
    assert [plan(each).adjacency for each in SAMPLINGS] == [ADD_REMOVE, ADD_REMOVE, REPLACE_ONE, ADD_REMOVE]


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_full_batch_is_no_sample(sampling):
    full = plan(sampling, batch_size=1000, adjacency=REPLACE_ONE)
    assert full.event == lw.Repeated(gaussian(0.6, REPLACE_ONE), count=3)
    assert full.sampler == "none: every step sees all rows"


def test_a_pass_of_a_cycle_is_one_gaussian():
    """The closed form: k passes of multiplier m are one Gaussian of m / sqrt(k)."""
    cycle = plan("cyclic", epochs=9, adjacency=ZERO_OUT)
    assert lw.price(cycle.event).epsilon(1e-5) == pytest.approx(
        lw.price(gaussian(0.4, ZERO_OUT)).epsilon(1e-5), rel=1e-12
    )


def test_under_replace_one_the_sensitivity_is_twice_the_norm():
    sampled = plan("poisson", adjacency=REPLACE_ONE).event.event
    assert sampled == lw.ReplaceOneSampled(gaussian(0.6, REPLACE_ONE), add_remove=gaussian(1.2), sampling_rate=RATE)
    assert plan("cyclic", adjacency=REPLACE_ONE).event.event.noise_multiplier == 0.6
    assert "2 C" in plan("fixed").explain()
    laplace = plan("cyclic", noise="laplace", adjacency=REPLACE_ONE)
    assert laplace.event.event == lw.LaplaceEvent(noise_multiplier=0.6, adjacency=REPLACE_ONE)


@given(rows=st.integers(1, 10**9), share=st.floats(1e-6, 1.0), hundredths=st.integers(1, 100_000))
def test_what_is_rounded_costs_more(rows, share, hundredths):
    batch, epochs = max(1, round(share * rows)), hundredths / 100
    exact = Fraction(hundredths, 100)
    made = {
        each: lw.sgd_plan(rows=rows, batch_size=batch, epochs=epochs, noise_multiplier=1.0, sampling=each)
        for each in SAMPLINGS
    }
    for each in ("poisson", "fixed"):
        assert Fraction(batch, rows) <= Fraction(made[each].sampling_rate) <= 1
        assert made[each].steps - 1 < exact * rows / batch <= made[each].steps
    for each in ("allocation", "cyclic"):
        assert made[each].passes - 1 < exact <= made[each].passes
        assert math.ceil(Fraction(made[each].steps, made[each].steps_per_pass)) <= made[each].passes
    assert made["allocation"].steps_per_pass <= Fraction(rows, batch) <= made["cyclic"].steps_per_pass
    # a row's probability of a step is no less than it was asked to be
    assert Fraction(made["allocation"].sampling_rate) >= Fraction(batch, rows)


@pytest.mark.slow  # losses composed on finer lattices
def test_fewer_steps_of_an_allocation_cost_more():
    costs = [lw.price(lw.RandomAllocation(gaussian(1.0), steps=t)).epsilon_interval(1e-5) for t in (9, 10)]
    assert costs[0][0] > costs[1][1]


def test_a_decimal_number_of_epochs_is_exact():
    assert [plan(rows=100, batch_size=10, epochs=each).steps for each in (0.1, 0.3, 0.7)] == [1, 3, 7]
    assert plan(rows=100, batch_size=10, epochs=np.float64(0.3)).steps == 3
    assert plan(epochs=7).epochs == 7.0


def test_a_budget_in_place_of_noise_is_kept_with_the_least_noise():
    budget = lw.Budget(epsilon=1.0, delta=1e-5, adjacency=ADD_REMOVE)
    made = lw.sgd_plan(**SIZE, sampling="poisson", budget=budget)
    assert made == plan().calibrated(budget)
    assert (
        lw.price(made.event).epsilon(1e-5)
        <= 1.0
        < lw.price(made.with_noise(0.999 * made.noise_multiplier).event).epsilon(1e-5)
    )
    assert lw.calibrate(lambda s: made.with_noise(s).event, budget) == made.noise_multiplier
    replaced = lw.Budget(epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)
    assert lw.sgd_plan(**SIZE, sampling="fixed", budget=replaced).adjacency is REPLACE_ONE
    with pytest.raises(AdjacencyMismatch):
        lw.sgd_plan(**SIZE, sampling="fixed", budget=budget, adjacency=REPLACE_ONE)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sampling": "shuffled"}, "sampling='shuffled' must be one of 'poisson', 'allocation', 'fixed', 'cyclic'"),
        ({"batch_size": 1001}, "batch_size=1001 must be <= rows=1000"),
        ({"rows": 10.5}, "rows=10.5 must be a whole number"),
        ({"epochs": 0}, "epochs=0 must be > 0"),
        ({"epochs": math.inf}, "epochs=inf must be a finite real number"),
        ({"noise_multiplier": -1.0}, "noise_multiplier=-1.0 must be > 0"),
        ({"noise_multiplier": None}, "give one of them"),
        ({"noise": "skellam"}, "noise='skellam' must be one of 'gaussian', 'laplace'"),
        ({"adjacency": "add-remove"}, "adjacency='add-remove' must be an Adjacency"),
        ({"sampling": "fixed", "adjacency": ADD_REMOVE}, "no bound for sampling='fixed'.*take adjacency replace-one"),
        ({"sampling": "allocation", "adjacency": REPLACE_ONE}, "no bound for sampling='allocation'.*sampling='fixed'"),
        ({"noise_multiplier": None, "budget": 1.0}, "budget=1.0 must be a Budget"),
    ],
)
def test_what_has_no_bound_or_no_sense_is_refused(changes, said):
    with pytest.raises(InvalidParameter, match=said):
        plan(**changes)


def test_a_plan_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan().rows = 5


@pytest.mark.parametrize(
    ("sampling", "words"),
    [
        ("poisson", ("Poisson: each step takes each row", "84", "rounded up", "do not hold")),
        ("allocation", ("exactly one of 33 steps", "rounded down", "an unfinished pass as a whole one", "do not hold")),
        ("fixed", ("draws 30 of 1000 rows without replacement", "2 C", "replace-one", "do not hold")),
        ("cyclic", ("no amplification", "public key", "under zero-out and replace-one; under add-remove")),
    ],
)
def test_the_sampler_the_rounding_and_a_shuffled_loader_are_said(sampling, words):
    made = plan(sampling)
    assert f"sampling: {sampling}" in str(made)
    for each in words:
        assert each in made.explain() + str(made.steps)
