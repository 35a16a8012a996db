"""The worst private mechanism and guesser of a few canaries, by a linear program: the p-value is what they attain."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import lil_matrix

from ledgerwood.verification.auditing.one_run import one_run_p_value


def largest_probability(canaries, guesses, correct, epsilon, delta):
    """Of at least `correct` right guesses, over all private kernels from inclusions to guesses.

    A private mechanism followed by any guesser is such a kernel. Each pair of neighbouring inclusions has slacks, one
    an outcome, that add up to delta at most.
    """
    inputs = list(itertools.product((0, 1), repeat=canaries))
    outcomes = [t for t in itertools.product((-1, 0, 1), repeat=canaries) if sum(map(abs, t)) == guesses]
    place = {bits: i for i, bits in enumerate(inputs)}
    pairs = [
        (place[bits], place[tuple(bit ^ (j == i) for j, bit in enumerate(bits))])
        for bits in inputs
        for i in range(canaries)
    ]
    kernel, width = len(inputs) * len(outcomes), len(outcomes)
    signs = 2 * np.array(inputs) - 1
    right = np.maximum(signs[:, None, :] * np.array(outcomes)[None], 0).sum(axis=2)
    gain = np.zeros(kernel + len(pairs) * width)
    gain[:kernel] = -(right.ravel() >= correct).astype(float) / len(inputs)
    most = lil_matrix((len(pairs) * (width + 1), gain.size))
    limits = np.zeros(len(pairs) * (width + 1))
    for pair, (one, other) in enumerate(pairs):
        slacks = kernel + pair * width
        for outcome in range(width):
            row = pair * width + outcome
            most[row, one * width + outcome] = 1.0
            most[row, other * width + outcome] = -math.exp(epsilon)
            most[row, slacks + outcome] = -1.0
        most[len(pairs) * width + pair, slacks : slacks + width] = 1.0
        limits[len(pairs) * width + pair] = delta
    whole = lil_matrix((len(inputs), gain.size))
    for i in range(len(inputs)):
        whole[i, i * width : (i + 1) * width] = 1.0
    found = linprog(
        gain,
        A_ub=most.tocsr(),
        b_ub=limits,
        A_eq=whole.tocsr(),
        b_eq=np.ones(len(inputs)),
        bounds=(0, None),
        method="highs",
    )
    assert found.status == 0
    return -found.fun


CASES = [(m, r, v) for m in (1, 2, 3) for r in range(1, m + 1) for v in range(1, r + 1)]


@pytest.mark.slow_after(21)  # a rate of error, by enumeration or many audits
@pytest.mark.parametrize(("canaries", "guesses", "correct"), CASES)
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_the_p_value_is_what_the_worst_mechanism_attains(canaries, guesses, correct, epsilon, delta):
    worst = largest_probability(canaries, guesses, correct, epsilon, delta)
    # 1e-7: what the solver leaves of its constraints.
    assert one_run_p_value(correct, guesses, canaries, epsilon=epsilon, delta=delta) == pytest.approx(worst, abs=1e-7)
