"""autodp's mechanisms: wrapped, exported, and refused where their numbers are none."""

import csv
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.interop import from_autodp, to_autodp
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, UnsupportedEvent

ADD_REMOVE, REPLACE_ONE = lw.Adjacency.ADD_REMOVE, lw.Adjacency.REPLACE_ONE
core = pytest.importorskip("autodp.autodp_core", reason="needs the extra: oracle")
zoo = pytest.importorskip("autodp.mechanism_zoo", reason="needs the extra: oracle")
transformers = pytest.importorskip("autodp.transformer_zoo", reason="needs the extra: oracle")
TRUTH = Path(__file__).resolve().parents[2] / "truth" / "renyi_gaussian.csv"


def custom(divergence, **flags):
    """A mechanism of a Renyi function of one's own."""
    mechanism = core.Mechanism()
    mechanism.name, mechanism.params = "custom", {}
    mechanism.RenyiDP = divergence
    for flag, value in flags.items():
        setattr(mechanism, flag, value)
    return mechanism


def gaussian(multiplier=1.0, adjacency=ADD_REMOVE):
    return lw.GaussianEvent(noise_multiplier=multiplier, adjacency=adjacency)


def test_a_gaussian_is_wrapped_from_above_and_closely():
    wrapped = from_autodp(zoo.GaussianMechanism(1.0), adjacency=ADD_REMOVE)
    assert isinstance(wrapped, lw.RenyiEvent)
    orders = np.array([1.02, 1.5, 2.0, 7.3, 64.0, 900.0])
    assert (wrapped.renyi(orders) >= gaussian().renyi(orders)).all()
    by_renyi = lw.price(gaussian(), method="renyi").epsilon(1e-5)
    assert by_renyi <= lw.price(wrapped).epsilon(1e-5) <= 1.001 * by_renyi


@pytest.mark.slow  # the whole grid of truths
def test_the_margin_covers_the_peer_on_the_grid_of_truths():
    sample = transformers.AmplificationBySampling()
    cells = {}
    with TRUTH.open() as lines:
        for row in csv.DictReader(lines):
            cell = (float(row["sampling_rate"]), float(row["noise_multiplier"]))
            cells.setdefault(cell, []).append((float(row["order"]), float(row["remove"])))
    checked, too_small = 0, 0
    for (rate, multiplier), points in cells.items():
        if rate in {1e-6, 1e-4}:  # where the peer's cancellation is worst
            mechanism = sample(zoo.GaussianMechanism(multiplier), rate, improved_bound_flag=True)
            for order, truth in points:
                peers_own = float(mechanism.RenyiDP(order))
                too_small += peers_own < truth
                if peers_own > 0.0:
                    wrapped = from_autodp(mechanism, adjacency=ADD_REMOVE, orders=[order])
                    assert wrapped.divergences[0] >= truth
                    checked += 1
    assert checked > 150
    assert too_small > 20


def test_repeated_wrapped_steps_agree_with_our_own():
    sample = transformers.AmplificationBySampling()
    wrapped = from_autodp(sample(zoo.GaussianMechanism(1.0), 0.01, improved_bound_flag=True), adjacency=ADD_REMOVE)
    own = lw.Repeated(lw.PoissonSampled(gaussian(), sampling_rate=0.01), count=10_000)
    exact = lw.price(own, method="renyi").epsilon(1e-5)
    assert exact <= lw.price(lw.Repeated(wrapped, count=10_000)).epsilon(1e-5) <= 1.005 * exact


def test_a_mechanism_without_divergences_is_refused():
    only_phi = zoo.GaussianMechanism(1.0, phi_off=False, RDP_off=True, approxDP_off=True)
    with pytest.raises(UnsupportedEvent, match="negative epsilons"):
        from_autodp(only_phi, adjacency=ADD_REMOVE)


@pytest.mark.parametrize("value", [math.nan, -1e-12, 0.0, -math.inf])
def test_a_divergence_that_is_none_is_refused(value):
    with pytest.raises(UnsupportedEvent, match="which is impossible"):
        from_autodp(custom(lambda order: value if order > 8 else order), adjacency=ADD_REMOVE)


def test_orders_at_which_the_peer_knows_nothing_are_left_out():
    wrapped = from_autodp(custom(lambda order: order if order <= 5 else math.inf), adjacency=ADD_REMOVE)
    assert wrapped.orders[-1] == 5.0
    assert wrapped.renyi([5.5])[0] == math.inf


def test_between_the_orders_the_chord_lies_above():
    wrapped = from_autodp(custom(lambda order: order / 2), adjacency=ADD_REMOVE, orders=[2.0, 9.0])
    asked = np.linspace(1.01, 9.0, 100)
    assert (wrapped.renyi(asked) >= asked / 2).all()


def test_flags_that_contradict_the_adjacency_are_refused():
    with pytest.raises(AdjacencyMismatch, match="replace_one"):
        from_autodp(zoo.GaussianMechanism(1.0), adjacency=REPLACE_ONE)
    with pytest.raises(AdjacencyMismatch, match="remove_only"):
        from_autodp(custom(lambda order: order, neighboring="remove_only"), adjacency=ADD_REMOVE)
    with pytest.raises(AdjacencyMismatch, match="groups of 2"):
        from_autodp(custom(lambda order: order, group_size=2), adjacency=ADD_REMOVE)
    replaced = zoo.GaussianMechanism(2.0)
    replaced.neighboring = "replace_one"
    subset = transformers.AmplificationBySampling(PoissonSampling=False)(replaced, 0.1)
    assert subset.neighboring == "add_remove"  # the flag that autodp forgets; the older one is still set
    with pytest.raises(AdjacencyMismatch, match="replace_one"):
        from_autodp(subset, adjacency=ADD_REMOVE)
    assert from_autodp(subset, adjacency=REPLACE_ONE).adjacency is REPLACE_ONE


def test_zero_out_is_not_taken_for_add_remove():
    exported = to_autodp(gaussian(adjacency=lw.Adjacency.ZERO_OUT))
    assert from_autodp(exported, adjacency=lw.Adjacency.ZERO_OUT).adjacency is lw.Adjacency.ZERO_OUT
    with pytest.raises(AdjacencyMismatch, match="zero_out"):
        from_autodp(exported, adjacency=ADD_REMOVE)
    own = from_autodp(zoo.GaussianMechanism(1.0), adjacency=lw.Adjacency.ZERO_OUT)  # autodp has no word for it
    assert own.adjacency is lw.Adjacency.ZERO_OUT


def test_bad_arguments_are_refused():
    mechanism = zoo.GaussianMechanism(1.0)
    with pytest.raises(InvalidParameter, match="autodp Mechanism"):
        from_autodp(object(), adjacency=ADD_REMOVE)
    with pytest.raises(InvalidParameter, match="margin"):
        from_autodp(mechanism, adjacency=ADD_REMOVE, margin=-0.1)
    with pytest.raises(InvalidParameter, match="orders"):
        from_autodp(mechanism, adjacency=ADD_REMOVE, orders=[1.0, 2.0])


def test_the_exported_divergences_are_ours():
    event = lw.PoissonSampled(lw.LaplaceEvent(noise_multiplier=2.0, adjacency=ADD_REMOVE), sampling_rate=0.1)
    mechanism = to_autodp(event)
    for order in (1.5, 2.0, 30.0):
        assert mechanism.RenyiDP(order) == event.renyi([order])[0]
    assert event.renyi([1.0 + 1e-6])[0] == mechanism.RenyiDP(1.0) == mechanism.RenyiDP(0.5)
    assert mechanism.RenyiDP(math.inf) == mechanism.get_pureDP() == event.pure_epsilon()
    assert mechanism.get_approxDP(1e-5) == lw.price(event).epsilon(1e-5)
    assert mechanism.get_approxDP(0.0) == event.pure_epsilon()
    assert mechanism.get_approx_delta(0.1) == lw.price(event).delta(0.1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the peer's search over orders
def test_autodp_composes_what_we_export():
    step, count = lw.PoissonSampled(gaussian(), sampling_rate=0.01), 10_000
    once = lw.LaplaceEvent(noise_multiplier=5.0, adjacency=ADD_REMOVE)
    composed = transformers.Composition()([to_autodp(step, name="step"), to_autodp(once, name="once")], [count, 1])
    own = lw.price(lw.Composed((lw.Repeated(step, count=count), once)), method="renyi").epsilon(1e-5)
    assert composed.get_approxDP(1e-5) == pytest.approx(own, rel=1e-5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_autodp_samples_what_we_export():
    sample = transformers.AmplificationBySampling()
    ours = sample(to_autodp(gaussian(2.0)), 0.05, improved_bound_flag=True)
    theirs = sample(zoo.GaussianMechanism(2.0), 0.05, improved_bound_flag=True)
    for order in (2, 7, 32):
        assert ours.RenyiDP(order) == pytest.approx(theirs.RenyiDP(order), rel=1e-9)
    with pytest.raises(AssertionError, match="replace_one"):
        sample(to_autodp(gaussian(2.0, REPLACE_ONE)), 0.05)


def test_an_event_without_divergences_is_exported_for_itself_alone():
    stated = lw.ApproximateEvent(epsilon=0.5, delta=1e-6, adjacency=ADD_REMOVE)
    mechanism = to_autodp(stated)
    assert mechanism.get_approxDP(1e-5) == pytest.approx(0.5, rel=1e-4)
    assert mechanism.RenyiDP(2.0) == math.inf


def test_there_and_back():
    step = lw.PoissonSampled(gaussian(), sampling_rate=0.1)
    back = from_autodp(to_autodp(step), adjacency=ADD_REMOVE)
    orders = np.array([1.1, 3.3, 50.0])
    assert (back.renyi(orders) >= step.renyi(orders)).all()
    assert back.renyi(orders) == pytest.approx(step.renyi(orders), rel=0.01)


@pytest.mark.parametrize("convert", [to_autodp, lambda event: from_autodp(event, adjacency=ADD_REMOVE)])
def test_a_missing_autodp_says_how_to_get_it(monkeypatch, convert):
    for module in [*sys.modules]:
        if module.partition(".")[0] == "autodp":
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "autodp", None)
    with pytest.raises(ImportError, match=r"autodp.*pip install 'ledgerwood\[autodp\]'"):
        convert(gaussian())
