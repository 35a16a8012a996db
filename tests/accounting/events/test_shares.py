"""Plans whose noise clients can share, and refusals by name of any other draw, at any depth."""

import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Composed, Repeated
from ledgerwood.accounting.events import Event, SkellamEvent, SkellamVectorEvent
from ledgerwood.accounting.events.shares import require_shared_noise
from ledgerwood.errors import UnsupportedEvent

A = Adjacency.ADD_REMOVE
ONE = SkellamEvent(variance=50.0, sensitivity=1, adjacency=A)
MANY = SkellamVectorEvent(variance=50.0, l2_sensitivity=2.0, adjacency=A)


@pytest.mark.parametrize("plan", [ONE, MANY, Repeated(MANY, count=9), Composed((ONE, Repeated(MANY, count=3)))])
def test_skellam_noise_of_any_composition_is_accepted(plan):
    require_shared_noise(plan)
    require_shared_noise(Composed((plan, Repeated(plan, count=2))))


OTHERS = [
    lw.GaussianEvent(noise_multiplier=2.0, adjacency=A),
    lw.EllipticalGaussianEvent(sensitivities=(1.0,), stddevs=(2.0,), adjacency=A),
    lw.LaplaceEvent(noise_multiplier=2.0, adjacency=A),
    lw.BoundedRangeEvent(epsilon=0.1, adjacency=A),
    lw.PureEvent(epsilon=0.1, adjacency=A),
    lw.PoissonSampled(ONE, sampling_rate=0.1),  # amplifies against those only who do not know the coins
    lw.Parallel((ONE, ONE), probabilities=(0.5, 0.5)),
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda event: type(event).__name__)
def test_any_other_draw_is_named_wherever_it_is(other):
    name = type(other).__name__
    for plan in (other, Repeated(other, count=4), Composed((MANY, Composed((ONE, Repeated(other, count=2)))))):
        with pytest.raises(UnsupportedEvent, match=f"of the noise of {name}: .*set noise='skellam'"):
            require_shared_noise(plan)


def test_a_class_from_outside_is_refused_as_what_it_is():
    class SkellamNoise(Event):
        adjacency = A

        def log_profile(self, epsilons, *, direction): ...

        def renyi(self, orders, *, direction=None): ...

        def pure_epsilon(self): ...

        def symmetric(self): ...

        def log_excess_moments(self, powers, *, sampling_rate): ...

    with pytest.raises(UnsupportedEvent, match="SkellamNoise is not one of the library's events"):
        require_shared_noise(SkellamNoise())
