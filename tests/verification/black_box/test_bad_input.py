import math

import numpy as np
import pytest

from ledgerwood import Adjacency, Budget, GaussianEvent
from ledgerwood.errors import AuditFailed, InvalidParameter
from ledgerwood.verification import audit

A = Adjacency.ADD_REMOVE
ONE = Budget(epsilon=1.0, delta=0.0, adjacency=A)


def run(sampler, pair=(0.0, 1.0), **named):
    named = {"claim": ONE, "n": 500, "rng": np.random.default_rng(3)} | named
    return audit(sampler, pair, **named)


def laplace(dataset, n, rng):
    return dataset + rng.laplace(size=n)


def test_a_sampler_that_raises_is_named_and_its_error_kept():
    def broken(dataset, n, rng):
        raise ZeroDivisionError("no rows")

    with pytest.raises(AuditFailed, match=r"ZeroDivisionError on pair\[0\].*no rows") as caught:
        run(broken)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_wrong_number_of_outputs():
    with pytest.raises(AuditFailed, match="n=500"):
        run(lambda dataset, n, rng: rng.laplace(size=n - 1))
    with pytest.raises(AuditFailed, match=r"shape \(\)"):
        run(lambda dataset, n, rng: 1.0)


def test_outputs_of_no_kind_that_can_be_audited():
    with pytest.raises(AuditFailed, match=r"output is of type object: .* Return what the mechanism releases"):
        run(lambda dataset, n, rng: [object()] * n)
    with pytest.raises(AuditFailed, match=r"output\[1\] is of type function"):
        run(lambda dataset, n, rng: [(1.0, laplace)] * n)
    with pytest.raises(AuditFailed, match="column 'b' has 3 entries, for 500 runs"):
        run(lambda dataset, n, rng: {"a": np.zeros(n), "b": np.zeros(3)})


def test_outputs_that_are_not_finite_may_be_refused():
    with pytest.raises(AuditFailed, match="non_finite"):
        run(lambda dataset, n, rng: np.where(rng.random(n) < 0.5, math.nan, 0.0), non_finite="refuse")


def test_a_sampler_with_a_seed_of_its_own():
    with pytest.raises(AuditFailed, match="not independent"):
        run(lambda dataset, n, rng: laplace(dataset, n, np.random.default_rng(7)))


def test_too_few_outputs_say_how_many_are_needed():
    with pytest.raises(InvalidParameter, match="at least 100"):
        run(laplace, n=10)
    with pytest.raises(InvalidParameter, match="at least 1002"):
        run(laplace, n=500, alpha=2.0**-1000)


def test_values_outside_their_bounds():
    for named in (
        {"alpha": 0.0},
        {"alpha": 0.6},
        {"n": 0},
        {"n": 1.5},
        {"numeric": "bits"},
        {"stop": "now"},
        {"delta": 1.0},
        {"rng": -1},
        {"rng": "seed"},
        {"rng": True},
    ):
        with pytest.raises(InvalidParameter):
            run(laplace, **named)


def test_a_claim_that_is_no_profile():
    with pytest.raises(InvalidParameter, match="profile"):
        run(laplace, claim=lambda epsilon: min(1.0, 0.1 * epsilon))
    with pytest.raises(InvalidParameter, match="claim"):
        run(laplace, claim="one")


@pytest.mark.parametrize(
    "claim",
    [lambda epsilon: math.nan, lambda epsilon: 2.0, lambda epsilon: -0.1, lambda epsilon: 1 / 0, lambda epsilon: "x",
     lambda epsilon: 0.3 if epsilon < 2.0 else 0.0, None],
)  # fmt: skip
def test_claims_that_are_no_probabilities_or_not_convex(claim):
    with pytest.raises(InvalidParameter, match="claim"):
        run(laplace, claim=claim)


def test_a_seed_is_a_generator():
    assert run(laplace, rng=5).bounds[0].value == run(laplace, rng=np.random.default_rng(5)).bounds[0].value


def test_what_is_missing_on_one_side_only_is_told():
    found = run(lambda dataset, n, rng: np.where(rng.random(n) < 0.5 * dataset, math.nan, 0.0), n=2000, alpha=1e-3)
    assert found.rejected


def test_pairs():
    with pytest.raises(InvalidParameter, match="two data sets"):
        run(laplace, pair=(1.0, 2.0, 3.0))
    with pytest.raises(InvalidParameter, match="both given"):
        run(laplace, pairs=[(0.0, 1.0)])
    with pytest.raises(InvalidParameter, match="at least one pair"):
        run(laplace, pair=None, pairs=[])

    def refuses(dataset, n, rng):
        raise ValueError("no vectors")

    with pytest.raises(AuditFailed, match="none of"):
        run(refuses, pair=None)


def test_a_mechanism_that_fails_on_one_data_set_of_a_pattern_is_not_passed_over():
    def refuses_ones(dataset, n, rng):
        if dataset.sum() == dataset.size:
            raise ValueError("too many ones")
        return rng.laplace(size=n)

    with pytest.raises(AuditFailed, match="too many ones"):
        run(refuses_ones, pair=None)


@pytest.mark.parametrize(
    "kind", [np.bool_, np.int8, np.uint64, np.float16, np.float32, np.complex128, np.str_, np.bytes_]
)
def test_outputs_of_every_kind_of_number_and_texts(kind):
    found = run(lambda dataset, n, rng: (rng.random(n) < 0.2 + 0.6 * dataset).astype(kind), n=2000)
    assert 1.0 < found.epsilon_lower < math.log(4.0) + 0.2
    assert found.rejected


def test_integers_beyond_the_numbers_of_float64_keep_their_low_bits():
    def low_bit(dataset, n, rng):
        return (1 << 60) + (rng.random(n) < 0.1 + 0.8 * dataset).astype(np.int64)

    assert run(low_bit, n=2000).epsilon_lower > 1.5


@pytest.mark.slow_after(2)  # many audits
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 2)])
def test_outputs_of_every_shape(shape):
    event = GaussianEvent(noise_multiplier=1.0, adjacency=A)
    found = run(
        lambda d, n, rng: rng.normal(size=(n, *shape)) + d * (np.arange(n * 0 + math.prod(shape)) == 0).reshape(shape),
        claim=event,
        n=2000,
    )
    assert not found.rejected
    assert found.epsilon_lower > 1.0


def test_a_sampler_with_a_seed_whose_outputs_are_laid_out_by_column():
    with pytest.raises(AuditFailed, match="not independent"):
        run(lambda dataset, n, rng: dataset + np.random.default_rng(7).laplace(size=(2, n)).T)


@pytest.mark.parametrize("own", [0.0, 1.0])
def test_noise_that_is_drawn_once_a_call_is_refused(own):
    """With `own` = 0 all outputs of a call are one number, and differ between calls."""
    with pytest.raises(AuditFailed, match="different distributions"):
        run(lambda dataset, n, rng: dataset + own * rng.laplace(size=n) + 5.0 * rng.laplace(), n=5000)


def test_a_sampler_that_returns_its_outputs_sorted_is_heard():
    assert not run(lambda dataset, n, rng: np.sort(dataset + rng.laplace(size=n)), n=5000).rejected


def test_outputs_whose_kind_depends_on_other_runs_are_refused():
    """One text among n numbers turns all of them into texts: a call with it has another encoding than one without."""

    def halting(dataset, n, rng):
        outputs = rng.laplace(size=n)
        return np.array(["halt", *outputs[1:]]) if rng.random() < 0.5 else outputs

    with pytest.raises(AuditFailed, match="of one kind"):
        run(halting)
    wide = 2**60

    def integers(dataset, n, rng):
        found = rng.integers(0, wide, n)
        return found if dataset == 0.0 else found.astype(float)

    with pytest.raises(AuditFailed, match="were integers beyond"):
        run(integers)


def test_a_claim_too_large_to_be_refuted_is_not():
    claim = Budget(epsilon=800.0, delta=0.0, adjacency=A)
    assert not run(laplace, claim=claim, delta=1e-5).rejected
