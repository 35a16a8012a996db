"""The loops over rows: one thread and several agree, and sums wrap modulo 2**64."""

import numpy as np
import pytest

from ledgerwood import routing
from ledgerwood.curator.kernels import sums as kernels
from ledgerwood.ensemble import TreeStructure
from ledgerwood.routing import add_trees, route_rows
from ledgerwood.threads import threads

ROWS = 3 * kernels.CHUNK_ROWS + 17
UNIT = float(2**20)
EVERYONE = np.empty(0, dtype=np.bool_)
ALL_WHOLE = np.empty(0, dtype=np.int32)


@pytest.fixture(scope="module")
def world():
    generator = np.random.default_rng(5)
    structure = TreeStructure(
        feature=np.array([0, 1, 2], np.int32),
        split=np.array([3, 2, 4], np.uint16),
        equals=np.array([False, True, False]),
    )
    return {
        "cells": generator.integers(0, 6, (3, ROWS)).astype(np.uint8),
        "tree": structure.lowered(),
        "scores": generator.normal(0, 1, ROWS),
        "labels": np.where(generator.random(ROWS) < 0.5, -1.0, 1.0),
        "sampled": generator.random(ROWS) < 0.4,
        "weights": generator.integers(0, 2**20 + 1, ROWS).astype(np.int32),
    }


NO_FILTER = (False, np.empty(0, np.int64), np.empty(0), 0.0, 0.0)


def moment_sums(world, sampled, logistic, weights=ALL_WHOLE):
    leaves, partial = np.empty(ROWS, np.int32), np.zeros((kernels.n_chunks(ROWS), 4, 2), np.int64)
    kernels.moment_sums(
        ROWS, world["cells"], *world["tree"], world["scores"], world["labels"], weights, sampled, logistic, 0.5, UNIT,
        int(UNIT / 2), *NO_FILTER, leaves, partial,
    )  # fmt: skip
    return leaves, partial


def curvature_sums(world, sampled, weights=ALL_WHOLE):
    leaves, partial = np.empty(ROWS, np.int32), np.zeros((kernels.n_chunks(ROWS), 4, 2), np.int64)
    kernels.curvature_sums(
        ROWS, world["cells"], *world["tree"], world["scores"], world["labels"], weights, sampled, 3.33, 1.0, UNIT,
        2**40, *NO_FILTER, leaves, partial,
    )  # fmt: skip
    return leaves, partial


def target_sums(world, sampled, weights=ALL_WHOLE):
    partial = np.zeros((kernels.n_chunks(ROWS), 2), np.int64)
    kernels.target_sums(ROWS, world["labels"], weights, sampled, UNIT, partial)
    return (partial,)


def score_updates(world):
    values = np.array([0.1, -0.2, 0.3, 1e-17])
    leaves = np.empty(ROWS, np.int32)
    route_rows(ROWS, world["cells"], *world["tree"], leaves)
    first, second = world["scores"].copy(), world["scores"].copy()
    kernels.add_leaf_values(ROWS, leaves, values, first)
    add_trees(ROWS, world["cells"], np.array([0, 3]), *world["tree"], values, second)
    np.testing.assert_array_equal(first, second)
    return leaves, first


def everything(world):
    return [
        *moment_sums(world, EVERYONE, False),
        *moment_sums(world, world["sampled"], True),
        *curvature_sums(world, EVERYONE),
        *curvature_sums(world, world["sampled"]),
        *target_sums(world, world["sampled"]),
        *moment_sums(world, world["sampled"], True, world["weights"]),
        *curvature_sums(world, EVERYONE, world["weights"]),
        *target_sums(world, EVERYONE, world["weights"]),
        *score_updates(world),
    ]


def test_one_thread_and_many_give_the_same_bits(world, monkeypatch):
    alone = everything(world)
    monkeypatch.setattr(routing, "THREADED_ROWS", 0)
    with threads(3):
        threaded = everything(world)
    for one, other in zip(alone, threaded, strict=True):
        np.testing.assert_array_equal(one, other)
    assert any(array.any() for array in alone)


@pytest.mark.slow  # many tables and their neighbours in exact integers
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threaded_rows", [0, 10**9])
def test_a_rows_contribution_does_not_hang_on_its_place_or_on_other_rows(world, monkeypatch, threaded_rows, weighted):
    """The same machine arithmetic for each row: else one row more could move the last step of all the others."""
    monkeypatch.setattr(routing, "THREADED_ROWS", threaded_rows)
    few = 300
    small = {key: value[..., :few] for key, value in world.items() if key != "tree"} | {"tree": world["tree"]}

    def sums(chosen, n_rows):
        leaves, moments, curvatures = (
            np.empty(n_rows, np.int32),
            np.zeros((1, 4, 2), np.int64),
            np.zeros((1, 4, 2), int),
        )
        rows = small["cells"][:, chosen].copy(), *small["tree"], small["scores"][chosen], small["labels"][chosen]
        rows = *rows, small["weights"][chosen] if weighted else ALL_WHOLE
        kernels.moment_sums(n_rows, *rows, EVERYONE, True, 0.5, UNIT, int(UNIT / 2), *NO_FILTER, leaves, moments)
        kernels.curvature_sums(n_rows, *rows, EVERYONE, 3.33, 1.0, UNIT, 2**40, *NO_FILTER, leaves, curvatures)
        return np.concatenate([moments[0], curvatures[0]])

    one_by_one = sum(sums(slice(i, i + 1), 1) for i in range(few))
    for start in (0, 1, 2, 3, 5, 7):
        together = sums(slice(start, few), few - start) + sum(sums(slice(i, i + 1), 1) for i in range(start))
        np.testing.assert_array_equal(together, one_by_one)


def test_chunks_cover_every_row_once(world):
    _, partial = moment_sums(world, EVERYONE, False)
    counts = partial[:, :, 0].sum(axis=1) // 2**20
    assert counts.tolist() == [kernels.CHUNK_ROWS] * 3 + [17]
    _, sampled = moment_sums(world, world["sampled"], False)
    assert sampled[:, :, 0].sum() // 2**20 == world["sampled"].sum()
    assert kernels.n_chunks(0) == kernels.n_chunks(1) == 1


def test_sums_wrap_modulo_two_to_the_sixty_four():
    """Nothing saturates: a sum that passes the end of int64 comes back, and subtracting the row restores it."""
    start = np.iinfo(np.int64).max - 5
    partial = np.array([[start, start]])
    kernels.target_sums(1, np.array([1.0]), ALL_WHOLE, EVERYONE, UNIT, partial)
    wrapped = (start + 2**20 + 2**63) % 2**64 - 2**63
    assert partial.tolist() == [[wrapped, wrapped]]
    assert wrapped < 0


@pytest.mark.parametrize(
    ("gradient", "steps"),
    [
        (1.5 / UNIT, 1), (-1.5 / UNIT, -1), (0.999 / UNIT, 0), (-0.999 / UNIT, 0), (7.0, 2**19), (-7.0, -(2**19)),
        (1e308, 2**19), (-np.inf, None), (np.nan, None),
    ],
)  # fmt: skip
def test_gradients_are_clipped_and_truncated_toward_zero(gradient, steps):
    partial, leaves = np.zeros((1, 1, 2), np.int64), np.empty(1, np.int32)
    nothing = TreeStructure.root().lowered()
    # The label is 0, so that the score is the gradient.
    kernels.moment_sums(
        1, np.zeros((1, 1), np.uint8), *nothing, np.array([gradient]), np.zeros(1), ALL_WHOLE, EVERYONE,
        False, 0.5, UNIT, int(UNIT / 2), *NO_FILTER, leaves, partial,
    )  # fmt: skip
    assert partial[0, 0].tolist() == ([0, 0] if steps is None else [2**20, steps])


def test_a_curvature_above_the_radius_loses_steps_of_its_hessian_or_counts_nothing():
    nothing = TreeStructure.root().lowered()

    def contribution(squared_radius):
        partial, leaves = np.zeros((1, 1, 2), np.int64), np.empty(1, np.int32)
        kernels.curvature_sums(
            1, np.zeros((1, 1), np.uint8), *nothing, np.zeros(1), np.ones(1), ALL_WHOLE, EVERYONE, 2.0, 1.0, UNIT,
            squared_radius, *NO_FILTER, leaves, partial,
        )  # fmt: skip
        return partial[0, 0].tolist()

    # At score 0, g = -1/2 and 2 h = 1/2.
    half = 2**19
    assert contribution(2 * half**2) == [half, -half]
    assert contribution(2 * half**2 - 1) == [half - 1, -half]
    assert contribution(half**2) == [0, 0]


def test_a_row_reads_its_cost_off_a_table_of_any_number_of_chords():
    for costs in ([0.0, 100.0, 100.0], [0.0, 10.0, 50.0, 75.0, 100.0, 100.0]):
        left = np.array([1000])
        assert kernels.pays(left, 0, 1.0, 0.0, np.array(costs), 0.5, 0.0)
        assert left[0] == 1000 - 50
