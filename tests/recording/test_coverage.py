"""Every mechanism, every release and every trainer passes the points of a recording: derived, with no list to keep."""

import importlib
import inspect
import pkgutil
from collections import Counter
from typing import Any

import numpy as np
import pytest

import ledgerwood as lw
import ledgerwood.curator
import ledgerwood.mechanisms as mechanisms
import ledgerwood.trainers
from ledgerwood.accounting.ledger import DrawEntry
from ledgerwood.curator.release import Release, Selected
from ledgerwood.mechanisms import Grid, NumericCandidates, RandomSource, SeededRandom, log_edges
from ledgerwood.recording.opening import recording
from ledgerwood.recording.points import point_of
from ledgerwood.trainers import PrivateSearch, SGBDTRegressor
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator

WHOLE = Grid(exponents=(0,))


def members(package: Any) -> list[type]:
    """Every class that is defined in a package."""
    names = [package.__name__, *(m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))]
    found = (each for name in names for each in vars(importlib.import_module(name)).values() if inspect.isclass(each))
    return sorted({each for each in found if each.__module__ in names}, key=lambda each: each.__name__)


def concrete(classes: list[type]) -> list[type]:
    return [each for each in classes if not getattr(each, "_is_protocol", False) and not inspect.isabstract(each)]


def samplers(kind: type) -> dict[str, Any]:
    """The public methods of a class by which it draws: those that are handed a source, or that use one it keeps."""
    keeps = "_source" in getattr(kind, "__slots__", ())
    methods = {name: each for name, each in vars(kind).items() if inspect.isfunction(each) and not name.startswith("_")}
    return {name: each for name, each in methods.items() if keeps or "source" in inspect.signature(each).parameters}


STATING = [each for each in concrete(members(mechanisms)) if inspect.isfunction(vars(each).get("event"))]
"""Mechanisms: what states an event."""
DRAWING = [each for each in concrete(members(mechanisms)) if each.__name__ in vars(mechanisms) and samplers(each)]


def unmarked(kind: type) -> list[str]:
    return [name for name, each in samplers(kind).items() if point_of(each) not in ("noise", "choice")]


def test_each_mechanism_has_a_sampler_that_passes_a_point():
    assert len(STATING) >= 17
    for kind in STATING:
        assert samplers(kind), f"{kind.__name__} states an event, and nothing of it draws"
    for kind in {*STATING, *DRAWING} - {RandomSource}:
        assert not unmarked(kind), f"{kind.__name__}: {unmarked(kind)} draw outside of every point"


def test_a_mechanism_that_draws_outside_of_the_points_is_told():
    class Outside:
        def event(self, sensitivity: object, adjacency: object) -> None: ...

        def select(self, utilities: Any, grid: Grid, source: RandomSource) -> int:
            return int(source.uint64(1)[0] % len(utilities))

    assert unmarked(Outside) == ["select"]


COUNTS = np.array([3, 9, 4], dtype=np.int64)
KEYS = {"a": 40, "b": 2}
SUM = np.array([[5]], dtype=np.int64)
DRAWS: dict[str, Any] = {
    "GaussianMechanism": lambda s: mechanisms.GaussianMechanism(stddev=2.0).randomise(SUM, WHOLE, s),
    "EllipticalGaussianMechanism": lambda s: mechanisms.EllipticalGaussianMechanism(stddevs=(2.0,)).randomise(
        SUM, WHOLE, s
    ),
    "LaplaceMechanism": lambda s: mechanisms.LaplaceMechanism(scales=(2.0,)).randomise(SUM, WHOLE, s),
    "DiscreteLaplaceMechanism": lambda s: mechanisms.DiscreteLaplaceMechanism(scale=2.0).randomise(SUM, WHOLE, s),
    "DiscreteGaussianMechanism": lambda s: mechanisms.DiscreteGaussianMechanism(scale=2.0).randomise(SUM, WHOLE, s),
    "SkellamMechanism": lambda s: mechanisms.SkellamMechanism(variance=4.0).randomise(SUM, WHOLE, s),
    "ExponentialMechanism": lambda s: mechanisms.ExponentialMechanism(rate=0.5).select(COUNTS, WHOLE, s),
    "PermuteAndFlipMechanism": lambda s: mechanisms.PermuteAndFlipMechanism(rate=0.5).select(COUNTS, WHOLE, s),
    "NoisyMaxMechanism": lambda s: mechanisms.NoisyMaxMechanism(scale=2.0).select(COUNTS, WHOLE, s),
    "GridlessMechanism": lambda s: mechanisms.GridlessMechanism(rate=0.5).select(
        [NumericCandidates(positions=np.array([2]), points=4, utilities=np.array([1, 2]))], WHOLE, s
    ),
    "QuantileMechanism": lambda s: mechanisms.QuantileMechanism(quantile=0.5, rate=0.5).select(COUNTS, 10, s),
    "JointQuantilesMechanism": lambda s: (
        mechanisms.JointQuantilesMechanism(quantiles=(0.3, 0.6), rate=0.5).select(COUNTS, 10, s),
        mechanisms.JointQuantilesMechanism(quantiles=(0.3, 0.6), rate=0.5).select_from_counts(COUNTS, s),
    ),
    "StabilityHistogramMechanism": lambda s: mechanisms.StabilityHistogramMechanism(scale=1.0, threshold=9).select(
        KEYS, s
    ),
    "GaussianStabilityMechanism": lambda s: mechanisms.GaussianStabilityMechanism(stddev=1.0, threshold=9).select(
        KEYS, s
    ),
    "BoundedStabilityMechanism": lambda s: mechanisms.BoundedStabilityMechanism(
        stddev=1.0, threshold=9, room=1024
    ).select(KEYS, s),
    "PrivateBoundsMechanism": lambda s: mechanisms.PrivateBoundsMechanism(scale=1.0, threshold=3).select(
        np.array([0.5, 0.6]), log_edges(0.0, 1.0, 0.1), s
    ),
    "RandomizedResponseMechanism": lambda s: mechanisms.RandomizedResponseMechanism(
        epsilon=1.0, categories=3
    ).randomise(np.array([0, 1, 2]), s),
    "RepeatedSelectionMechanism": lambda s: mechanisms.RepeatedSelectionMechanism(shape=0.0, stopping_rate=0.3).select(
        lambda _: (1.0, "run"), s
    ),
    "PoissonSelectionMechanism": lambda s: mechanisms.PoissonSelectionMechanism(mean=2.0).select(
        lambda _: (1.0, "run"), s
    ),
    "SparseVectorMechanism": lambda s: (
        mechanisms.SparseVectorMechanism(threshold_scale=1.0, query_scale=1.0).start(WHOLE, s).above(3, 4)
    ),
}
"""One draw of each; a mechanism that is missing fails the test."""


class Watching:
    """Counts words by where they were drawn: inside of noise and choices, of samples, of releases beside them, or out
    of all."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.words: Counter[str] = Counter()
        self.passed: Counter[str] = Counter()
        self.empty: list[str] = []
        self.outcomes: list[Any] = []

    def hook(self, point: str):
        def standing(body, *given, **named):
            self.passed[point] += 1
            if point == "words":
                self.words[self.stack[-1] if self.stack else "outside"] += 1
                return body(*given, **named)
            before = self.passed["noise"] + self.passed["choice"]
            self.stack.append(point)
            try:
                outcome = body(*given, **named)
            finally:
                self.stack.pop()
            if point in ("release", "select"):
                self.outcomes.append(outcome)
                if self.passed["noise"] + self.passed["choice"] == before:
                    self.empty.append(named["purpose"])
            return outcome

        return standing

    @property
    def hooks(self):
        points = (
            "words", "grant", "draw", "open", "open_groups", "group", "open_allocation", "step", "search", "sample",
            "assign", "allocate", "allocated", "release", "select", "noise", "evidence", "choice", "structure",
        )  # fmt: skip
        return {point: self.hook(point) for point in points}


def test_each_mechanism_draws_its_words_inside_of_a_point():
    assert set(DRAWS) == {kind.__name__ for kind in STATING}
    for name, draw in DRAWS.items():
        watch = Watching()
        with recording("test", watch.hooks):
            draw(SeededRandom(3))
        assert watch.words, name
        assert set(watch.words) <= {"noise", "choice"}, (name, watch.words)


# ------------------------------------------------------------------------------------------------------- curators


def test_whatever_releases_in_the_curator_passes_a_point_or_hands_on():
    """A round either has the point, or is made of one that has: then its own body only calls that one."""
    for kind in concrete(members(ledgerwood.curator)):
        for name in (
            "release", "select", "sample", "assign", "allocate", "allocated", "open", "open_groups", "open_allocation",
        ):  # fmt: skip
            method = vars(kind).get(name)
            if not inspect.isfunction(method) or "source" in inspect.signature(method).parameters:
                continue  # queries choose by a mechanism that they are handed, behind the round's point
            if point_of(method) is None:
                handed = f"self._rounds.{name}(" in inspect.getsource(method)
                assert handed or "raise " in inspect.getsource(method), f"{kind.__name__}.{name} passes no point"


def test_releases_are_made_in_methods_that_pass_a_point():
    """No module of the library builds a `Release` or a `Selected` anywhere else."""
    for package in (ledgerwood.curator, ledgerwood.trainers):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(info.name)
            made = sum(
                each in inspect.getsource(module)
                for each in ("return Release(", "return Selected(", "= Release(", "= Selected(")
            )
            marked = [
                method
                for kind in vars(module).values()
                if inspect.isclass(kind) and kind.__module__ == module.__name__
                for method in vars(kind).values()
                if point_of(method) in ("release", "select")
            ]
            assert not made or len(marked) >= made, info.name


# ------------------------------------------------------------------------------------------------------- trainers


def estimators() -> list[type]:
    found, left = set(), [AbstractTreeEstimator]
    for info in pkgutil.walk_packages(ledgerwood.trainers.__path__, "ledgerwood.trainers."):
        importlib.import_module(info.name)
    while left:
        each = left.pop()
        left += each.__subclasses__()
        if not inspect.isabstract(each) and each.__module__.startswith("ledgerwood."):
            found.add(each)
    return sorted(found, key=lambda each: each.__name__)


ROWS = np.random.default_rng(2).uniform(size=(60, 2))
FEATURES = (lw.Numeric("a", 0, 1), lw.Numeric("b", 0, 1))


def made(kind: type, **named: Any) -> tuple[Any, Any]:
    """An estimator of the kind with a schema that it can learn, and labels."""
    if kind is PrivateSearch:
        schema = lw.Schema(features=FEATURES, target=lw.Numeric("y", 0, 1))
        inner = SGBDTRegressor(n_estimators=2, max_depth=1)
        return PrivateSearch(inner, [{"learning_rate": 0.1}], mean_runs=3.0, schema=schema, **named), ROWS[:, 0]
    if getattr(kind, "_estimator_type", None) == "classifier" or "Classifier" in kind.__name__:
        schema = lw.Schema(features=FEATURES, target=lw.Categorical("y", (0, 1)))
        return kind(schema=schema, **named), (ROWS[:, 0] > 0.5).astype(int)
    return kind(schema=lw.Schema(features=FEATURES, target=lw.Numeric("y", 0, 1)), **named), ROWS[:, 0]


@pytest.mark.slow  # one fit of every estimator
@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
def test_each_estimator_draws_and_releases_through_the_points(kind):
    model, labels = made(kind, random_state=5)
    watch = Watching()
    with recording("test", watch.hooks):
        model.fit(ROWS, labels)
    assert watch.passed["grant"] == 1
    own = [entry for entry in model.ledger_.entries if isinstance(entry, DrawEntry)]
    if kind is not PrivateSearch:  # whose runs draw from purses of their own
        assert watch.passed["draw"] == len(own)
    assert watch.outcomes
    assert all(isinstance(each, Release | Selected) for each in watch.outcomes)
    assert not watch.empty  # each release has noise or a choice
    # Words are noise, choices, samples, groups, or public structure: none is drawn in a release beside its mechanism.
    assert set(watch.words) <= {"noise", "choice", "sample", "assign", "outside"} | {
        "search" if kind is PrivateSearch else "outside"
    }, watch.words
