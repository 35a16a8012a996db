"""The calculator's numbers are the library's, its curves bounds on the safe side, and its inputs bounded."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood.accounting import risk
from ledgerwood.accounting.costs.losses import plans
from ledgerwood.dashboard import calculator
from ledgerwood.errors import InvalidParameter
from ledgerwood.report.noise import NoisySteps

from .conftest import A
from .test_routes import words

FORM = {"rows": "10000", "batch": "500", "epochs": "5", "noise": "2", "delta": "1e-5"}


def inputs(**changes):
    return calculator.read_inputs({**FORM, **changes})


def priced(noise, rate=0.05, count=100):
    event = lw.GaussianEvent(noise_multiplier=noise, adjacency=A)
    return lw.price(lw.Repeated(lw.PoissonSampled(event, sampling_rate=rate) if rate < 1 else event, count=count))


def test_the_answer_is_the_price():
    found = calculator.answer(inputs())
    assert found.epsilon == priced(2.0).epsilon(1e-5)
    assert found.certified
    whole = calculator.answer(inputs(batch="10000"))
    assert whole.epsilon == priced(2.0, rate=1.0, count=5).epsilon(1e-5)
    assert calculator.answer(inputs(epsilon="7")) is found, "what takes no part is not asked for"


@given(
    rows=st.integers(100, 10**9), share=st.floats(1e-6, 1.0), hundredths=st.integers(1, 100_000),
)  # fmt: skip
def test_rate_and_steps_are_the_commands_and_never_below_the_exact_ones(rows, share, hundredths):
    batch = min(max(1, round(share * rows)), 10**7)
    asked = calculator.Inputs(
        given="noise", rows=rows, batch=batch, epochs=hundredths / 100, noise=1.0, epsilon=1.0, delta=1e-6
    )
    told = NoisySteps.of(sampling_rate=None, steps=None, rows=rows, batch_size=batch, epochs=hundredths / 100)
    assert (asked.sampling_rate, asked.steps) == (told.sampling_rate, told.count)
    assert asked.event(1.5) == told.event("gaussian", 1.5, A)
    assert Fraction(batch, rows) <= Fraction(asked.sampling_rate) <= 1
    assert asked.steps - 1 < Fraction(hundredths, 100) * rows / batch <= asked.steps


def test_the_least_noise_keeps_the_target():
    found = calculator.answer(inputs(given="epsilon", epsilon="1"))
    assert found.epsilon <= 1.0
    assert priced(found.noise).epsilon(1e-5) == found.epsilon
    assert priced(0.999 * found.noise).epsilon(1e-5) > 1.0


@pytest.mark.parametrize("change", [{}, {"batch": "10000"}])
def test_the_curves_are_on_the_safe_side(change):
    asked = inputs(**change)
    found, price = calculator.curves(asked), lw.price(asked.event(asked.noise))
    deltas, below = np.array(found.deltas), plans.plan(asked.event(asked.noise))
    for k in (0, 6, 12, 18):
        least = math.exp(plans.log_delta(below, found.epsilons[k], above=False))
        assert least <= deltas[k] <= price.delta(found.epsilons[k]) * 1.01
    assert (np.diff(deltas) <= 0).all()
    rates = np.array(found.type_one)[::16]
    best = risk.trade_off(price, rates)
    assert (np.array(found.type_two)[::16] <= best + 1e-3).all()
    assert (np.array(found.type_two)[::16] >= best - 0.02).all()
    rate, power = found.attackers[1]
    assert 0.999 <= power / risk.true_positive_rate(price, rate) <= 1.15
    assert found.success >= risk.success(price, 0.5) * (1 - 1e-6)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"rows": "5"}, "rows"), ({"rows": "1e99"}, "rows"), ({"batch": "20000"}, "more than all 10,000 rows"),
     ({"epochs": "nan"}, "epochs"), ({"epochs": "-1"}, "epochs"), ({"noise": "1e-9"}, "noise"),
     ({"delta": "0"}, "delta"), ({"noise": "1" * 99}, "noise"),
     ({"noise": "<b>"}, "is not a number"), ({"rows": "1000000000", "batch": "1"}, "at most 10,000,000 batches"),
     ({"given": "x"}, "given"), ({"epochs": "inf"}, "epochs"), ({"epsilon": "1e6"}, "epsilon")],
)  # fmt: skip
def test_inputs_are_bounded(board, change, said):
    with pytest.raises(InvalidParameter, match=said):
        inputs(**change)
    answer = board.ask("GET", "/calculator", params={**FORM, **change})
    assert answer.status_code == 422
    assert "Not computed" in answer.text
    assert "<b>" not in answer.text


def test_the_smallest_target_has_an_answer(board):
    answer = board.ask(
        "GET", "/calculator/answer", params={**FORM, "given": "epsilon", "epsilon": "0.01", "delta": "1e-12"}
    )
    assert answer.status_code == 200
    assert "Noise multiplier" in answer.text


def test_it_works_without_a_script(board):
    page = board.ask("GET", "/calculator", params=FORM)
    said = words(page)
    assert f"Epsilon {priced(2.0).epsilon(1e-5):.4f}"[:13] in said
    assert "over 100 steps, each with 5 % of the rows" in said
    assert "is right with probability" in said
    assert 'value="10000"' in page.text
    assert page.text.count('class="plot"') == 2
    assert "<html" not in board.ask("GET", "/calculator/curves", params=FORM).text


def test_a_large_delta_is_warned_of(board):
    said = words(board.ask("GET", "/calculator/answer", params={**FORM, "delta": "1e-3"}))
    assert "Delta is large" in said
    assert "above 1 / expected_rows" in said
