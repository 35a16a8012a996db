import mpmath as mp
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.dpxgboost.replaced_sample import ReplacedSample


@pytest.mark.slow_after(8)  # certified quadrature of each loss
@pytest.mark.parametrize(("sample", "count"), [(1, 10), (1, 2), (9, 10)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.99])
def test_the_loss_by_quadrature(sample, count, epsilon, fraction, hockey_stick):
    specimen, rate = ReplacedSample(sample=sample, count=count, epsilon=epsilon), mp.mpf(sample) / count

    def law(sign):
        return lambda x: mp.log(
            epsilon / 2 * ((1 - rate) * mp.exp(-epsilon * abs(x)) + rate * mp.exp(-epsilon * abs(x - sign)))
        )

    pure = float(mp.log((1 - rate + rate * mp.exp(epsilon)) / (1 - rate + rate * mp.exp(-epsilon))))
    at, far = fraction * pure, 45 / epsilon
    edges = [-far, -1, 0, 1, far]
    assert specimen.delta(at) == pytest.approx(hockey_stick(law(1), law(-1), at, edges), rel=1e-8)
    assert specimen.rows()[-1].exact == pytest.approx(pure, rel=1e-12)
    assert specimen.delta(pure * 1.0001) == 0.0


def test_the_librarys_sample_of_a_fixed_size_takes_the_replaced_rows_price():
    # The sum moves by 2 where its row is replaced: multiplier 1/2 at the specimen's noise.
    inner = lw.LaplaceEvent(noise_multiplier=0.5, adjacency=lw.Adjacency.REPLACE_ONE)
    price = lw.price(lw.FixedSizeSampled(inner, sample_size=1, population=10))
    specimen = ReplacedSample()
    assert price.epsilon(0.0) >= specimen.rows()[-1].exact
    for at in (0.0, 0.1586, 0.2):
        assert price.delta(at) >= specimen.delta(at) * (1 - 1e-12)


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"sample": 0}, {"count": 1}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        ReplacedSample(**wrong)
