"""Exact tests that noise has the distribution which accounting assumes, on draws and on the noise inside a fit.

A replay freezes outputs, so it cannot detect a sampler that adds less noise than its mechanism says; these tests can.
Each value is turned into one that is exactly normal, or uniform, if its distribution is right, for all rows and earlier
outputs: docs/explanation/noise-law.md#noise-law.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from ledgerwood import _validate
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import (
    EllipticalGaussianMechanism,
    GaussianMechanism,
    Grid,
    LaplaceMechanism,
    RandomSource,
    SecureRandom,
)
from ledgerwood.pages.shown import Told
from ledgerwood.verification.auditing.result import level
from ledgerwood.verification.noise.record import ADDITIVE, Additive, NoiseRecord, noise_tests, recorded

_FINE = 20
"""Bits of a standard deviation that a grid of the check's own resolves."""
_VALUES = np.array([0, 1, -1, 1 << 40, 3 - (1 << 61)], dtype=np.int64)
"""Exact values that noise is added to: it must not depend on them."""
_LEAST_DRAWS = 50


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseCheck(Told):
    """The result of exact tests of noise. For a fit, it is for the data owner only: it is made from exact values.

    Args:
        of: the name of the mechanism or fit.
        draws: numbers of noise, and choices.
        alpha: probability that correct noise is rejected, over all tests together.
        p_values: the p values of each test by its name; each is compared with alpha over their number.
        scale: the noise's scale over the stated one, if it is of the stated family; None of choices, or of several
            families.
        scale_low, scale_high: its confidence interval, of level 1 - alpha.
        untested: draws that are not tested, with their numbers: choices whose distribution is not known here,
            words that no mechanism accounts for, and releases without noise.
        seconds: running time, drawing included.
    """

    of: str
    draws: int
    alpha: float
    p_values: tuple[tuple[str, float], ...]
    scale: float | None
    scale_low: float | None
    scale_high: float | None
    untested: tuple[tuple[str, int], ...] = ()
    seconds: float = 0.0

    @property
    def rejected(self) -> bool:
        """True if the distribution is refused."""
        return any(p < self.alpha / len(self.p_values) for _, p in self.p_values)

    @property
    def too_little(self) -> bool:
        """True if there is less noise than stated, for sure: the scale's whole interval is below 1."""
        return self.rejected and self.scale_high is not None and self.scale_high < 1.0

    def __str__(self) -> str:
        name, p = min(self.p_values, key=lambda pair: pair[1])
        verdict = (
            f"another distribution (test of {name}, p {p:.2g})" if self.rejected else f"nothing found (least p {p:.2g})"
        )
        scale = "" if self.scale is None else f", scale {self.scale:.4g} of the stated one"
        untested = "".join(f"; not tested: {count} x {name}" for name, count in self.untested)
        return f"{self.of}: {self.draws} draws, {verdict}{scale}{untested}"


def check_noise(
    mechanism: Additive,
    *,
    draws: int = 100_000,
    alpha: float = 1e-3,
    grid: Grid | None = None,
    source: RandomSource | None = None,
    seed: int = 0,
) -> NoiseCheck:
    """Draw from an additive mechanism, and test the draws against the distribution that its event assumes.

    Args:
        mechanism: the mechanism of Gaussian, Laplace, discrete Gaussian, discrete Laplace or Skellam noise.
        draws: numbers of noise in all columns together, at least 50.
        alpha: probability of refusing a right one.
        grid: the grid of the statistic; None for whole numbers, or for a fine one where the noise is continuous.
        source: random words; None for secure ones.
        seed: the seed of the coins that the tests themselves throw.

    Raises:
        InvalidParameter: another mechanism, a grid that it does not fit, too few draws, or a `randomise` that returns
            no int64 array of the statistic's shape.

    Source: docs/explanation/noise-law.md#noise-law.
    """
    if not isinstance(mechanism, ADDITIVE):
        raise InvalidParameter(f"mechanism={mechanism!r} must be additive noise of this library (unit: mechanism)")
    draws, alpha = _validate.count("draws", draws, "numbers", minimum=_LEAST_DRAWS), level(alpha)
    grid = _own_grid(mechanism) if grid is None else grid
    start = time.perf_counter()
    rows = -(-draws // grid.columns)
    source = SecureRandom() if source is None else source
    record = NoiseRecord(np.random.default_rng(seed))
    for part in (rows - rows // 2, rows // 2):  # two releases: a sampler with a seed of its own repeats itself
        statistic = np.resize(_VALUES, (part, grid.columns))
        record.sum(mechanism, statistic, mechanism.randomise(statistic, grid, source), grid)
    return _checked(record, repr(mechanism), alpha, start)


def check_fit_noise(
    fit: Callable[[], object], *, fits: int = 1, alpha: float = 1e-3, seed: int = 0, of: str = "the fits"
) -> NoiseCheck:
    """Run a fit, and test all noise and all choices that it draws against what their mechanisms state.

    Rounds, and a replay, check that the mechanisms are those that were paid for. Together with this test they show that
    the noise is the noise of the accounting. The result is for the data owner: it is made from exact values.

    Args:
        fit: trains something; called `fits` times. Other threads and asyncio tasks are not seen, but for those that use
            the fit's own curator (docs/explanation/recording.md#recording-context).
        fits: how often; more draws see smaller faults.
        alpha: probability of refusing right noise.
        seed: the seed of the coins that the tests themselves throw.
        of: what the check calls it.

    Raises:
        InvalidParameter: fewer than 50 numbers of noise and choices were drawn: says how many there were.
        ReplayFailed: another recording is open in this thread or task.

    Source: docs/explanation/noise-law.md#noise-law-of-a-fit.
    """
    fits, alpha = _validate.count("fits", fits, "fits"), level(alpha)
    start = time.perf_counter()
    record = NoiseRecord(np.random.default_rng(seed))
    with recorded(record):
        for _ in range(fits):
            fit()
    if not record.draws:
        raise InvalidParameter(f"fits={fits} drew no noise and made no choice whose distribution is known here")
    if record.draws < _LEAST_DRAWS:
        raise InvalidParameter(
            f"fits={fits} drew {record.draws} numbers of noise and choices, and the tests need {_LEAST_DRAWS}: about "
            f"{-(-_LEAST_DRAWS * fits // record.draws)} fits (unit: fits)"
        )
    return _checked(record, of, alpha, start)


def _checked(record: NoiseRecord, of: str, alpha: float, start: float) -> NoiseCheck:
    p_values, scale = noise_tests(record, alpha)
    value, low, high = (None, None, None) if scale is None else scale
    return NoiseCheck(
        of=of, draws=record.draws, alpha=alpha, p_values=p_values, scale=value, scale_low=low, scale_high=high,
        untested=tuple(sorted(record.untested.items())), seconds=time.perf_counter() - start,
    )  # fmt: skip


def _own_grid(mechanism: Additive) -> Grid:
    match mechanism:
        case GaussianMechanism(stddev=stddev):
            scales: tuple[float, ...] = (stddev,)
        case EllipticalGaussianMechanism(stddevs=given) | LaplaceMechanism(scales=given):
            scales = given
        case _:
            return Grid(exponents=(0,))
    return Grid(exponents=tuple(math.frexp(scale)[1] - _FINE for scale in scales))
