"""The law behind Skellam events: Bessel functions by mpmath, and the bounds on what a window leaves out."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting.events.noise.skellam import law_of, log_steps, reach


@pytest.mark.parametrize("variance", [1e-12, 1e-3, 0.7, 25.0, 3e3, 1e6])
def test_ratios_of_bessel_functions_to_the_last_place(variance: float) -> None:
    steps = log_steps(variance, 40)
    with mp.workdps(60):
        v = mp.mpf(variance)
        for k in (1, 2, 3, 17, 40):
            exact = mp.log(mp.besseli(k - 1, v) / mp.besseli(k, v))
            assert abs(steps[k - 1] / exact - 1) < 3e-16


@pytest.mark.parametrize("variance", [1e-12, 0.04, 3.0, 250.0])
def test_probabilities_and_log_ratios(variance: float) -> None:
    law, shift, z = law_of(variance, 70), 4, np.arange(-12, 40)
    log_weight, log_ratio = law.atoms(z, shift)
    with mp.workdps(60):
        v = mp.mpf(variance)
        for k, weight, ratio in zip(z.tolist(), log_weight, log_ratio, strict=True):
            own, other = (mp.besseli(abs(j), v) for j in (k, k - shift))
            assert abs(weight - (mp.log(own) - v)) <= 1e-15 * (1 + abs(weight))
            assert abs(ratio - mp.log(other / own)) <= 5e-16 * abs(ratio)


@pytest.mark.parametrize("variance", [1e-12, 0.04, 3.0, 250.0])
@pytest.mark.parametrize("level", [5.0, 80.0])
def test_reach_keeps_its_promise(variance: float, level: float) -> None:
    k = reach(variance, level)
    with mp.workdps(60):
        v = mp.mpf(variance)
        beyond = mp.exp(-v) * mp.nsum(lambda j: mp.besseli(int(j), v), [k, k + 60 + int(3 * variance**0.5)])
        assert beyond <= mp.exp(-level)
        assert k == 1 or v * ((k - 1) / v * mp.asinh((k - 1) / v) - mp.sqrt(1 + ((k - 1) / v) ** 2) + 1) < level


@pytest.mark.slow  # sums of many terms in mpmath
@given(
    exponent=st.floats(-6.0, 1.5),
    shift=st.integers(1, 5),
    power=st.one_of(st.floats(1.0 + 1e-6, 6.0), st.floats(-5.0, -1e-6)),
    rate=st.sampled_from([1.0, 1.0 - 1e-6, 0.4, 1e-3, 1e-9]),
    further=st.integers(0, 12),
)
@settings(max_examples=60)
def test_what_a_window_leaves_out_is_bounded(
    exponent: float, shift: int, power: float, rate: float, further: int
) -> None:
    """Short windows: the sums beyond both ends, term by term."""
    variance, last = 10.0**exponent, shift + further
    law, p = law_of(variance, 400), np.array([power])
    with mp.workdps(80):
        v, q, a = mp.mpf(variance), mp.mpf(rate), mp.mpf(power)
        inside = [mp.exp(-v) * mp.besseli(k, v) for k in range(161)]

        def rest(integers: range) -> mp.mpf:
            total = mp.mpf(0)
            for z in integers:
                own, other = inside[abs(z)], inside[abs(z - shift)]
                s = 1 - q + q * other / own
                total += own * (s**a - 1 - a * (s - 1))
            return mp.log(total)

        assert rest(range(last + 1, 150)) <= law.log_above(p, last, shift, rate)[0]
        if rate < 1.0 or power > 1.0:
            assert rest(range(-last - 1, -150, -1)) <= law.log_below(p, last, shift, rate)[0]
