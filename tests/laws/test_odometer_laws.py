"""What an odometer reads of any event, of any family."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting import RenyiOdometer, WhitehouseOdometer, price
from ledgerwood.accounting.events import ApproximateEvent, Event
from ledgerwood.errors import BudgetExceeded, UnsupportedEvent


def least_divergence(event):
    try:
        return float(event.renyi([1.0 + 2.0**-6])[0])
    except UnsupportedEvent:
        return math.inf


@settings(max_examples=40, deadline=None)
@given(event=st.from_type(Event), exponent=st.floats(0.3, 12.0))
def test_a_reading_is_no_less_than_what_the_event_costs_alone(event, exponent):
    delta = 10.0**-exponent
    odometer = RenyiOdometer(delta=delta)
    try:
        found, bound, twice = odometer.epsilon([event]), odometer.loss([event]), odometer.epsilon([event, event])
    except UnsupportedEvent:
        draws = [draw for draw, _ in event.draws()]
        assert any(math.isinf(least_divergence(draw)) for draw in draws)
        if not any(isinstance(draw, ApproximateEvent) for draw in draws):
            return
        delta = min(0.9, 2 * delta)
        try:
            found = bound = twice = WhitehouseOdometer(delta=delta, delta_prime=delta / 2).epsilon([event])
        except (BudgetExceeded, UnsupportedEvent):
            return
    assert 0.0 <= found <= bound < math.inf
    assert found <= twice * (1 + 1e-12)
    assert bound <= event.pure_epsilon() * (1 + 1e-12)
    low, _ = price(event).epsilon_interval(delta)
    assert low <= found * (1 + 1e-9) + 1e-12
