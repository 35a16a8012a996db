"""Releases that are made only if a private test passes. docs/explanation/conditional.md#conditional."""

from ledgerwood import _validate
from ledgerwood.accounting.events.base import Event, require_event
from ledgerwood.accounting.events.composition import Composed
from ledgerwood.accounting.events.stated import ApproximateEvent

_NO_EPSILON = 1e-100  # the least that an ApproximateEvent states


def propose_test_release(test: Event, release: Event, *, false_pass: float) -> Event:
    """Returns the event of a release that is made only if a private test passes, and is private only where it may.

    The release has its event's cost for two neighbours that are close enough (say, their answers differ by at most the
    proposed sensitivity). If any two neighbours are not, the test passes on both with probability at most
    `false_pass`. Then the whole costs at most test, release and `false_pass` of delta, together.
    docs/explanation/conditional.md#conditional. Source of the scheme: Dwork and Lei 2009. If the release is private on
    all data sets, the test protects nothing: `Composed((test, release))` is the event.

    The test releases one bit, pass or fail, and nothing else (not the noisy distance that it compared): where more is
    shown, a failed test tells data sets that are not close apart as well, and the proof does not hold.

    Args:
        test: what the test's answer, pass or fail, costs, for all neighbours (a count with noise, compared with a
            threshold).
        release: what the release costs, for neighbours that are close enough.
        false_pass: the largest probability that the test passes where the release is not private, in (0, 1). For
            Laplace noise of scale b on a distance that is 0 there, and a threshold T >= 0: exp(-T / b) / 2.

    Raises:
        InvalidParameter: a value outside its bound, or something that is not an event.
        AdjacencyMismatch: test and release under different adjacencies.
    """
    require_event(test)
    require_event(release)
    delta = _validate.positive("false_pass", false_pass, "probability")
    if delta >= 1.0:
        raise _validate.fail("false_pass", false_pass, "in (0, 1)", "probability")
    failed = ApproximateEvent(epsilon=_NO_EPSILON, delta=delta, adjacency=test.adjacency)
    return Composed((test, release, failed))
