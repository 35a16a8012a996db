"""The generator of a check: the one that is given, one by a seed, or a fresh one."""

import numpy as np

from ledgerwood import _validate

Seeded = np.random.Generator | int | None
"""A generator, or the seed of one; None as each check says."""


def generator_of(rng: object, *, unsaid: int | None = None) -> np.random.Generator:
    """The generator.

    Args:
        rng: as a check was given it: `Seeded`.
        unsaid: the seed where it is None; None for fresh entropy of the operating system.

    Raises:
        InvalidParameter: it is no generator, and no whole number >= 0.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng(unsaid)
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise _validate.fail("rng", rng, "a numpy Generator, or a whole number >= 0 that seeds one", "generator")
