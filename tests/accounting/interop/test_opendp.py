"""OpenDP's measurements by their privacy maps: each measure, the relation, and what is refused."""

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.interop import from_opendp, opendp
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, UnsupportedEvent

dp = pytest.importorskip("opendp.prelude", reason="needs the extra: opendp")
dp.enable_features("contrib", "honest-but-curious")
ADD_REMOVE, ZERO_OUT, REPLACE_ONE = lw.Adjacency.ADD_REMOVE, lw.Adjacency.ZERO_OUT, lw.Adjacency.REPLACE_ONE
INTEGERS = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
LAPLACE, GAUSSIAN = dp.m.make_laplace(*INTEGERS, scale=2.0), dp.m.make_gaussian(*INTEGERS, scale=2.0)
PROFILE = dp.c.make_zCDP_to_approxDP(GAUSSIAN)


def converted(measurement, d_in=1, adjacency=ADD_REMOVE):
    return from_opendp(measurement, d_in=d_in, adjacency=adjacency)


def test_each_measure_has_its_event():
    assert converted(LAPLACE) == lw.PureEvent(epsilon=LAPLACE.map(1), adjacency=ADD_REMOVE)
    assert converted(GAUSSIAN, d_in=3) == lw.ZeroConcentratedEvent(rho=GAUSSIAN.map(3), adjacency=ADD_REMOVE)
    fixed = dp.c.make_fix_delta(PROFILE, 1e-6)
    assert converted(fixed) == lw.ApproximateEvent(epsilon=fixed.map(1)[0], delta=1e-6, adjacency=ADD_REMOVE)
    assert converted(dp.c.make_approximate(LAPLACE)) == converted(LAPLACE)


@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-6, 3e-6, 1e-15])
def test_a_profile_is_bounded_between_its_points_too(delta):
    """The truth is the discrete Gaussian's own profile; OpenDP's own curve is met at the points."""
    event, curve = converted(PROFILE), PROFILE.map(1)
    truth = lw.price(lw.DiscreteGaussianEvent(scale=2.0, sensitivity=1, adjacency=ADD_REMOVE)).epsilon(delta)
    ours = lw.price(event).epsilon(delta)
    assert truth <= ours <= curve.epsilon(delta) * 1.02
    if delta in {1e-3, 1e-6}:
        assert ours == pytest.approx(curve.epsilon(delta), rel=1e-9)


def test_chords_hold_for_every_profile_that_keeps_the_points():
    """The largest profile that is convex in e^epsilon and passes below the points is the chord: here a Laplace's."""
    truth = lw.LaplaceEvent(noise_multiplier=1.0, adjacency=ADD_REMOVE)
    points = np.array([0.0, 0.2, 0.5, 0.9])
    deltas = np.exp(truth.log_profile(points, direction=lw.Direction.REMOVE)) * (1 + 1e-12)
    stated = lw.ProfileEvent(epsilons=tuple(points), deltas=tuple(deltas), adjacency=ADD_REMOVE)
    asked = np.linspace(0.0, 0.99, 200)
    assert (
        stated.log_profile(asked, direction=lw.Direction.REMOVE)
        >= truth.log_profile(asked, direction=lw.Direction.REMOVE)
    ).all()


def test_a_renyi_curve_is_tabulated():
    curve = dp.m.make_user_measurement(
        *INTEGERS, dp.renyi_divergence(), lambda x: x, lambda d: lambda order: order * d * 0.125, TO="i64"
    )
    event = converted(curve)
    orders = np.array([1.25, 1.7, 8.0, 200.0])
    assert (event.renyi(orders) >= 0.125 * orders * (1 - 1e-15)).all()
    gaussian = lw.GaussianEvent(noise_multiplier=2.0, adjacency=ADD_REMOVE)
    exact = lw.price(gaussian, method="renyi").epsilon(1e-6)
    assert exact <= lw.price(event).epsilon(1e-6) <= 1.001 * exact


def test_a_composition_is_one_measurement():
    both = dp.c.make_composition([LAPLACE, LAPLACE])
    assert converted(both).epsilon == pytest.approx(1.0, rel=1e-12)


def test_the_metric_and_the_relation_must_agree():
    domain = dp.vector_domain(dp.atom_domain(T=bool))
    count = (domain, dp.symmetric_distance()) >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    assert converted(count).epsilon == pytest.approx(1.0)
    assert converted(count, d_in=2, adjacency=REPLACE_ONE).epsilon == pytest.approx(2.0)
    for d_in, adjacency in ((2, ADD_REMOVE), (1, REPLACE_ONE), (1, ZERO_OUT)):
        with pytest.raises(AdjacencyMismatch, match="SymmetricDistance at d_in=.* is not"):
            converted(count, d_in=d_in, adjacency=adjacency)


def constant(metric, domain=None):
    """A measurement of the metric whose map says epsilon 1."""
    domain = domain or dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_user_measurement(domain, metric, dp.max_divergence(), lambda _: 0, lambda _: 1.0, TO="i64")


def test_a_changed_row_is_no_row_set_to_zero():
    """A sum of three values in [99, 100]: a replaced row moves it by 1, one that is set to zero by 100."""
    domain = dp.vector_domain(dp.atom_domain(bounds=(99, 100), T="i64"), size=3)
    unbounded = dp.t.make_metric_unbounded(domain, dp.change_one_distance())
    total = unbounded >> dp.t.then_sum() >> dp.m.then_laplace(scale=1.0)
    assert converted(total, adjacency=REPLACE_ONE).epsilon == pytest.approx(1.0)
    for measurement in (total, constant(dp.hamming_distance())):
        with pytest.raises(
            AdjacencyMismatch, match=r"is not zero-out: .*a sum of values in \[99, 100\] moves by up to"
        ):
            converted(measurement, adjacency=ZERO_OUT)
    noise = dp.m.make_laplace(*INTEGERS, scale=1.0)
    assert converted(noise, d_in=100, adjacency=ZERO_OUT).epsilon == pytest.approx(100.0)


def test_metrics_of_statistics_are_the_callers_word():
    numbers = dp.vector_domain(dp.atom_domain(T="f64", nan=False))
    for metric in (dp.l1_distance(T="f64"), dp.l2_distance(T="f64"), dp.linf_distance(T="f64")):
        for adjacency in lw.Adjacency:
            assert converted(constant(metric, numbers), d_in=3.0, adjacency=adjacency).epsilon == 1.0
    assert converted(constant(dp.discrete_distance())).epsilon == 1.0


@pytest.mark.parametrize(("text", "kind", "d_in", "adjacency"), [
    ("FrameDistance(SymmetricDistance())", "FrameDistance", 1, ADD_REMOVE),
    ("FrameDistance(InsertDeleteDistance())", "FrameDistance", 2, REPLACE_ONE),
    ("L01InfDistance(AbsoluteDistance(i32))", "Metric", (1, 2, 3), ZERO_OUT),
])  # fmt: skip
def test_metrics_of_frames_are_read(text, kind, d_in, adjacency):
    opendp._require_relation(metric(text, kind), d_in, adjacency)


def metric(text, kind):
    return type(kind, (), {"__str__": lambda self: text})()


def test_frames_of_opendp_print_so():
    for inner in (dp.symmetric_distance(), dp.insert_delete_distance()):
        assert str(dp.frame_distance(inner)) == f"FrameDistance({inner})"
    assert str(dp.l01inf_distance(dp.absolute_distance(T="i32"))) == "L01InfDistance(AbsoluteDistance(i32))"


@pytest.mark.parametrize(("text", "kind", "d_in", "error"), [
    ("FrameDistance(SymmetricDistance())", "FrameDistance", 2, AdjacencyMismatch),
    ("FrameDistance(SymmetricDistance())", "FrameDistance", [1], AdjacencyMismatch),
    ("SymmetricDistance()", "Metric", [1], AdjacencyMismatch),
    ('SymmetricIdDistance { identifier: col("a") }', "SymmetricIdDistance", 1, UnsupportedEvent),
    ('ChangeOneIdDistance { identifier: col("a") }', "ChangeOneIdDistance", 1, UnsupportedEvent),
    ('FrameDistance(SymmetricIdDistance { identifier: col("a") })', "FrameDistance", 1, UnsupportedEvent),
    ("FrameDistance(L1Distance(f64))", "FrameDistance", 1, UnsupportedEvent),
    ("L01InfDistance(SymmetricDistance())", "Metric", 1, UnsupportedEvent),
    ("NewDistance()", "Metric", 1, UnsupportedEvent),
])  # fmt: skip
def test_metrics_between_data_sets_that_are_not_known_are_refused(text, kind, d_in, error):
    with pytest.raises(error, match="SymmetricDistance"):
        opendp._require_relation(metric(text, kind), d_in, ADD_REMOVE)


@pytest.mark.parametrize("name", ["AbsoluteDistance(i32)", "SymmetricDistance()", "apart"])
def test_a_metric_of_the_users_own_is_refused_whatever_it_is_called(name):
    numbers = dp.vector_domain(dp.atom_domain(T="i64"))
    with pytest.raises(UnsupportedEvent, match="user_distance.* is not known to be add-remove"):
        converted(constant(dp.user_distance(name), numbers))


def test_what_has_no_event_is_refused():
    with pytest.raises(InvalidParameter, match="must be an opendp Measurement"):
        converted(object())
    with pytest.raises(UnsupportedEvent, match=r"Approximate\(ZeroConcentratedDivergence\) has no event here"):
        converted(dp.c.make_approximate(GAUSSIAN))
    with pytest.raises(UnsupportedEvent, match="MaxDivergence of 0"):
        converted(LAPLACE, d_in=0)
    with pytest.raises(UnsupportedEvent, match="of inf"):
        converted(dp.m.make_laplace(*INTEGERS, scale=0.0))
