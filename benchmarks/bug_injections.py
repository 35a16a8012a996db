"""Bugs for trainers, one at a time: each patches the classes of the library for as long as it lasts.

Nothing in the library knows of them, and there is no switch. A bug says what it is in words, and where there is no such
thing why not.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import ledgerwood as lw
from benchmarks.bug_systems import DEPTH, SEED, SYSTEMS, TREES, System, rows_of
from ledgerwood.accounting.events import Composed, PoissonSampled, Repeated
from ledgerwood.accounting.filters import BasicFilter
from ledgerwood.curator import Curator, LabelledSplits, LabelledTests, LeafLabels, SplitGains
from ledgerwood.curator.queries.splits.tests import open_tests
from ledgerwood.curator.rounds import CuratorGroups, CuratorRound, group_ends, held_by
from ledgerwood.curator.tables.columns import AbstractRows
from ledgerwood.curator.tables.trees import TreeTable
from ledgerwood.ensemble import Ensemble, SplitTests, Tree
from ledgerwood.mechanisms import (
    EllipticalGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PermuteAndFlipMechanism,
    SeededRandom,
)
from ledgerwood.recording.points import with_body
from ledgerwood.trainers.base import plan as base_plan
from ledgerwood.trainers.base import trainer
from ledgerwood.trainers.dpxgboost import training as dpxgboost
from ledgerwood.trainers.federated import training as federated
from ledgerwood.trainers.sgbdt import training as sgbdt

SUMS = (GaussianMechanism, EllipticalGaussianMechanism, LaplaceMechanism)
CHOICES = (ExponentialMechanism, PermuteAndFlipMechanism)
Method = Callable[..., Any]
_LAST = f"leaves of tree {TREES}", f"level {DEPTH} of tree {TREES}", f"splits of tree {TREES}, level {DEPTH}"
"""Purposes of the last level of the last tree, or of its leaves, as the trainers name them; PrivaTree has others."""
_LABELS = "labels", "splits and labels"
"""Those of PrivaTree's last choice."""


@dataclass(frozen=True)
class Bug:
    """A bug.

    Args:
        name: of the row.
        words: what goes wrong.
        inject: a context manager, from the system; None of the null row.
        absent: by system, why there is no such bug in it.
        audited: whether it shows in one release of one tree, which is what an audit looks at.
        parameters: what the bug makes of parameters before a fit: from (system, parameters, y) to others.
    """

    name: str
    words: str
    inject: Callable[[System], Any] | None = None
    absent: dict[str, str] = dataclasses.field(default_factory=dict)
    parameters: Callable[[System, dict[str, Any], Any], dict[str, Any]] | None = None
    audited: bool = False

    @contextmanager
    def active(self, system: System) -> Iterator[None]:
        """The library with the bug."""

        def fitting(original: Method) -> Method:
            def fit(model: Any, X: Any, y: Any, *given: Any, **named: Any) -> Any:
                if self.parameters is not None:
                    model.set_params(**self.parameters(system, model.get_params(deep=False), y))
                with rows_of((X, y)):
                    return original(model, X, y, *given, **named)

            return fit

        owner = next(kind for kind in system.kind.__mro__ if "fit" in vars(kind))
        with ExitStack() as stack:
            stack.enter_context(patched((owner, "fit", fitting)))
            if self.inject is not None:
                stack.enter_context(self.inject(system))
            # Plans are remembered by what they cost, with the bug or without it.
            base_plan._calibrated.cache_clear()
            stack.callback(base_plan._calibrated.cache_clear)
            yield


@contextmanager
def patched(*changes: tuple[Any, str, Callable[[Any], Any]]) -> Iterator[None]:
    """Each (owner, name, from the old value to the new one)."""
    with ExitStack() as stack:
        for owner, name, change in changes:
            old = inspect.getattr_static(owner, name)
            if name in vars(owner):
                stack.callback(setattr, owner, name, old)
            else:  # a plan's base has it
                stack.callback(delattr, owner, name)
            setattr(owner, name, with_body(old, change))
        yield


def instead(new: Any) -> Callable[[Any], Any]:
    """For `patched`: another value, whatever the old one was."""
    return lambda _: new


def halved(mechanism: Any) -> Any:
    """Half the noise, or twice the rate; the price that it states stays what it was."""
    match mechanism:
        case GaussianMechanism(stddev=stddev):
            return GaussianMechanism(stddev=stddev / 2)
        case EllipticalGaussianMechanism(stddevs=stddevs):
            return EllipticalGaussianMechanism(stddevs=tuple(s / 2 for s in stddevs))
        case LaplaceMechanism(scales=scales):
            return LaplaceMechanism(scales=tuple(s / 2 for s in scales))
    return dataclasses.replace(mechanism, rate=2 * mechanism.rate)


# ----------------------------------------------------------------------------------------------------- too little noise


def _with_half(original: Method) -> Method:
    def asked(self: Any, query: Any, mechanism: Any, *, purpose: str) -> Any:
        return original(self, query, halved(mechanism), purpose=purpose)

    return asked


def half_noise(_: System) -> Any:
    return patched((CuratorRound, "release", _with_half), (CuratorRound, "select", _with_half))


def half_noise_unchecked(_: System) -> Any:
    return patched(
        (CuratorRound, "release", _with_half),
        (CuratorRound, "select", _with_half),
        (CuratorRound, "_take", instead(lambda *_: None)),
    )


def half_sampler(_: System) -> Any:
    def half(original: Method) -> Method:
        return lambda self, *given, **named: original(halved(self), *given, **named)

    return patched(
        *((kind, "randomise", half) for kind in SUMS),
        *((kind, "select", half) for kind in CHOICES),
    )


def one_noise(_: System) -> Any:
    """Drawn for the first leaf, added to all."""

    def once(original: Method) -> Method:
        return lambda self, sums, grid, source: sums + original(self, 0 * sums[:1], grid, source)

    return patched(*((kind, "randomise", once) for kind in SUMS))


# --------------------------------------------------------------------------------------------------------- not paid for


def not_granted(system: System) -> Any:
    """The plan forgets a level of each tree, or a tree where levels cost nothing; the loop does not."""

    def less(plan: Any) -> Any:
        levels = Repeated(plan.split_event, count=plan.max_depth - 1)
        parts = (plan.count_event(plan.sketch_epsilon),) if isinstance(plan, dpxgboost.DPXGBoostPlan) else ()
        event = Composed((*parts, levels, plan.leaf_event))
        rate = getattr(plan, "subsample", 1.0)
        return event if rate == 1.0 else PoissonSampled(event, sampling_rate=rate)

    if system.chooses:
        return patched((system.plan, "event", instead(property(_short_tree))))
    if system.name in ("DPBoost", "DP-XGBoost"):
        return patched((system.plan, "tree_event", instead(property(less))))

    def fewer(old: Any) -> Any:
        def event(plan: Any) -> Any:
            return old.fget(dataclasses.replace(plan, n_estimators=plan.n_estimators - 1))

        return property(event)

    return patched((system.plan, "event", fewer))


def _short_tree(plan: Any) -> Any:
    return Composed((Repeated(plan.level_event, count=plan.levels - 1), plan.label_event))


def labels_not_granted(system: System) -> Any:
    """The plan forgets PrivaTree's last choice."""

    def levels(plan: Any) -> Any:
        return Repeated(plan.level_event, count=plan.levels)

    return patched((system.plan, "event", instead(property(levels))))


def not_drawn(_: System) -> Any:
    """Every second round is opened under the receipt of the one before it."""
    kept: dict[int, list[Any]] = {}

    def again(curator: Any, draw: Callable[[], Any]) -> Any:
        known = kept.setdefault(id(curator), [curator, None, 0])
        known[2] += 1
        if known[2] % 2:
            known[1] = draw()
        return known[1]

    def opened(original: Method) -> Method:
        def open_(self: Any, event: Any, *, purpose: str) -> Any:
            inner, rate = (event.event, event.sampling_rate) if isinstance(event, PoissonSampled) else (event, 1.0)
            fresh = again(self, lambda: original(self, event, purpose=purpose))
            if kept[id(self)][2] % 2:
                return fresh
            sampled = self._table.sample(rate, self._source)
            return CuratorRound(self._table, sampled, held_by(inner), fresh._receipt, self._source, None)

        return open_

    def grouped(original: Method) -> Method:
        def open_(self: Any, event: Any, *, purpose: str) -> Any:
            fresh = again(self, lambda: original(self, event, purpose=purpose))
            if kept[id(self)][2] % 2:
                return fresh
            held = [held_by(member) for member in event.events]
            assignment = self._table.assign(group_ends(event), self._source)
            return CuratorGroups(self._table, assignment, held, fresh._receipt, self._source, None)

        return open_

    return patched((Curator, "open", opened), (Curator, "open_groups", grouped))


def exact_last(system: System) -> Any:
    """What the last level or the last leaves release is thrown away, and the exact outcome taken."""
    if not system.chooses:
        return _exact(_LAST)
    # The last one with its labels is a bug of its own.
    return _exact((f"splits, level {DEPTH if system.parameters['split_method'] == 'accuracy' else DEPTH + 1}",))


def exact_labels(_: System) -> Any:
    """PrivaTree's last choice is thrown away, and the best one taken."""
    return _exact(_LABELS)


def _exact(purposes: tuple[str, ...]) -> Any:
    """Exact outcomes of the releases and choices whose purposes begin so."""

    def exact(original: Method) -> Method:
        def release(self: Any, query: Any, mechanism: Any, *, purpose: str) -> Any:
            released = original(self, query, mechanism, purpose=purpose)
            if not purpose.startswith(purposes):
                return released
            return dataclasses.replace(released, value=self._table.statistic(query, self._sampled))

        return release

    def best(original: Method) -> Method:
        def select(self: Any, query: Any, mechanism: Any, *, purpose: str) -> Any:
            selected = original(self, query, mechanism, purpose=purpose)
            if not purpose.startswith(purposes):
                return selected
            return dataclasses.replace(selected, value=_best(query, self._table.utilities(query, self._sampled)))

        return select

    return patched((CuratorRound, "release", exact), (CuratorRound, "select", best))


def _best(query: Any, utilities: Any) -> Any:
    """The candidate of the largest utility at each node, in the form in which the query's choice is released."""
    if isinstance(query, LeafLabels):
        return utilities.reshape(-1, query.classes).argmax(axis=1)
    candidates = open_tests(query.tests, query.structure)
    pairs = query.classes**2 if isinstance(query, LabelledSplits) else 1
    places = np.where(np.repeat(candidates, pairs, axis=1), utilities, np.iinfo(np.int64).min).argmax(axis=1)
    tests = query.tests.taken(np.where(candidates.any(axis=1), places // pairs, -1))
    if not isinstance(query, LabelledSplits):
        return tests
    return LabelledTests(tests=tests, labels=np.stack(np.divmod(places % pairs, query.classes), axis=1).ravel())


def half_price(_: System) -> Any:
    def charge(original: Method) -> Method:
        def half(self: Any, event: Any, spent: Any, budget: Any, delta: Any) -> Any:
            found = original(self, event, spent, budget, delta)
            return dataclasses.replace(found, epsilon=found.epsilon / 2)

        return half

    return patched((BasicFilter, "charge", charge))


# ---------------------------------------------------------------------------------------- contributions, words, samples


def doubled_clip(_: System) -> Any:
    """Rows count up to twice the clip that the sensitivity is stated for, or twice where there is no clip."""

    def inside(query: Any) -> str:
        """The field that holds what a query is made of, or its clip; empty where it has none."""
        names = {field.name for field in dataclasses.fields(query)}
        return next((name for name in ("leaf", "statistic", "clip") if name in names), "")

    def clipped(query: Any) -> bool:
        name = inside(query)
        return name == "clip" or (name != "" and clipped(getattr(query, name)))

    def wider(query: Any) -> Any:
        name = inside(query)
        return dataclasses.replace(query, **{name: 2 * query.clip if name == "clip" else wider(getattr(query, name))})

    def statistic(original: Method) -> Method:
        def read(self: Any, query: Any, sampled: Any, budgets: Any = None) -> Any:
            if clipped(query):
                return original(self, wider(query), sampled, budgets)
            asked = getattr(query, "statistic", query)
            factor = 2 if "classes" in {field.name for field in dataclasses.fields(asked)} else 1
            return factor * original(self, query, sampled, budgets)

        return read

    def utilities(original: Method) -> Method:
        def read(self: Any, query: Any, sampled: Any) -> Any:
            if isinstance(query, SplitGains):
                wide = wider(query)
                return original(self, wide, sampled) << (wide.grid.exponents[0] - query.grid.exponents[0])
            # All other choices of these trainers are by rows, which count 1.
            return 2 * original(self, query, sampled)

        return read

    return patched((TreeTable, "statistic", statistic), (TreeTable, "utilities", utilities))


def same_words(_: System) -> Any:
    """Every release starts the same stream of noise anew."""

    def seeded(original: Method) -> Method:
        def asked(self: Any, *given: Any, **named: Any) -> Any:
            self._source = SeededRandom(9)
            return original(self, *given, **named)

        return asked

    return patched((CuratorRound, "release", seeded), (CuratorRound, "select", seeded))


def same_seed(_: System) -> Any:
    """Public trees are drawn from the seed of the noise."""
    return patched((trainer, "structure_generator", lambda old: lambda _: old(SeededRandom(SEED))))


def kept_sample(_: System) -> Any:
    def once(original: Method) -> Method:
        kept: dict[int, tuple[Any, Any]] = {}

        def drawn(table: Any, public: Any, source: Any) -> Any:
            if id(table) not in kept:
                kept[id(table)] = table, original(table, public, source)
            return kept[id(table)][1].copy()

        return drawn

    return patched((AbstractRows, "sample", once), (AbstractRows, "assign", once))


# ---------------------------------------------------------------------------------------------------- read off the rows


def quantiles(cells: Any, *, number: int = 3) -> list[Any]:
    """Of each feature's cells, exactly."""
    shares = np.arange(1, number + 1) / (number + 1)
    return [np.unique(np.maximum(np.quantile(column, shares, method="higher"), 1)).astype(np.int64) for column in cells]


def exact_quantiles(system: System) -> Any:
    """Candidates, or the thresholds that random trees are drawn from, are quantiles of the rows."""

    def own() -> list[Any]:
        return quantiles(system.cells(rows_of.current))

    def tests(_: Any, cells: Any, *__: Any, **___: Any) -> SplitTests:
        return SplitTests.every(cells, own())

    def cut(original: Method) -> Method:
        return lambda *given, **named: original(*given, **named, cuts=[column.tolist() for column in own()])

    match system.name:
        case "S-GBDT":
            return patched((sgbdt, "random_tree", cut))
        case "DPBoost":
            return patched((system.plan, "candidate_tests", instead(tests)))
        case "DP-XGBoost":
            return patched((dpxgboost, "sketched_tests", instead(tests)))
        case "federated":
            return patched((federated, "first_candidates", instead(lambda *_, **__: own())))
    return patched((system.plan, "thresholds", instead(lambda *_: own())))


def pruned(system: System) -> Any:
    """Leaves without a row have no value."""

    def without(original: Method) -> Method:
        def train(self: Any, plan: Any, aggregator: Any, *rest: Any) -> Any:
            whole = original.__func__ if isinstance(original, staticmethod) else functools.partial(original, self)
            found = whole(plan, aggregator, *rest)
            cells = aggregator._table._parts[0].rows.cells
            if isinstance(found, Ensemble):
                return _pruned(found, cells)
            return tuple(_pruned(each, cells) for each in found)

        return train

    owner = next(kind for kind in system.kind.__mro__ if "_train" in vars(kind))
    return patched((owner, "_train", without))


def _pruned(ensemble: Ensemble, cells: Any) -> Ensemble:
    found = Ensemble(initial_score=ensemble.initial_score)
    for tree in ensemble.trees:
        held = np.bincount(tree.structure.route(cells), minlength=tree.structure.n_leaves) > 0
        found = found.extended(Tree(structure=tree.structure, values=np.where(held, tree.values, 0.0)))
    return found


def from_labels(_: System, parameters: dict[str, Any], y: Any) -> dict[str, Any]:
    """The label's range, or the classes, are those of the rows."""
    schema = parameters["schema"]
    if isinstance(schema.target, lw.Categorical):
        target: Any = lw.Categorical("y", tuple(np.unique(y).tolist()))
    else:
        target = lw.Numeric("y", float(np.min(y)), float(np.max(y)))
    return {"schema": lw.Schema(features=schema.features, target=target)}


def exact_counts(_: System) -> Any:
    """The number of rows beside a sum is the exact one: the denominator of the leaf."""

    def exact(original: Method) -> Method:
        def release(self: Any, query: Any, mechanism: Any, *, purpose: str) -> Any:
            released = original(self, query, mechanism, purpose=purpose)
            if released.grid.columns != 2:
                return released
            value = released.value.copy()
            value[..., 0] = self._table.statistic(query, self._sampled)[..., 0]
            return dataclasses.replace(released, value=value)

        return release

    return patched((CuratorRound, "release", exact))


def by_rows(system: System, _: dict[str, Any], y: Any) -> dict[str, Any]:
    """A parameter is a rule of the exact number of rows."""
    return {system.tuned: len(y) / 100.0}


_PRIVATREES = tuple(system.name for system in SYSTEMS if system.chooses)
_BOOSTED = tuple(system.name for system in SYSTEMS if not system.chooses)
NULL = Bug("none", "the correct trainer", audited=True)
BUGS = (
    NULL,
    Bug("half the noise, by the trainer", "a mechanism of half the noise for what was granted", half_noise),
    Bug(
        "half the noise, unchecked", "the same, and the round does not compare it with its draw",
        half_noise_unchecked, audited=True,
    ),
    Bug(
        "half the noise, by the sampler", "mechanism and event are right, its draws are half as wide", half_sampler,
        audited=True,
    ),
    Bug(
        "one noise for all leaves", "drawn once a release", one_noise,
        dict.fromkeys(_PRIVATREES, "it adds no noise to sums: splits and labels are choices"),
    ),
    Bug("a level not granted", "the plan prices a level, or a tree of free splits, too few", not_granted),
    Bug(
        "labels not granted", "the plan does not price the last choice, of labels, or of splits and labels",
        labels_not_granted, dict.fromkeys(_BOOSTED, "its leaves have values, no labels"),
    ),
    Bug("a level not drawn", "every second round is opened under the receipt before it", not_drawn),
    Bug(
        "a level without its noise", "the exact outcome of the last level, or leaves, is used", exact_last,
    ),
    Bug(
        "labels without their noise", "the best labels are taken, of PrivaTree's default with the best last splits",
        exact_labels, dict.fromkeys(_BOOSTED, "its leaves have values, no labels"), audited=True,
    ),
    Bug("half the charge", "the ledger is charged half the plan's epsilon", half_price),
    Bug("clip doubled", "a row adds up to twice what the sensitivity says", doubled_clip, audited=True),
    Bug("noise words used twice", "each release starts the same stream anew", same_words, audited=True),
    Bug(
        "one seed for trees and noise", "public structure is drawn from the words of the noise", same_seed,
        dict.fromkeys(("DPBoost", "DP-XGBoost", *_PRIVATREES), "its trees are chosen, none is drawn at random"),
    ),
    Bug(
        "sample kept", "one sample, or one assignment of rows, for all trees", kept_sample,
        {
            "federated": "every query asks all rows",
            **dict.fromkeys(_PRIVATREES, "every level asks all rows, and there is one tree"),
        },
    ),
    Bug("exact quantiles", "thresholds are taken at quantiles of the rows", exact_quantiles),
    Bug("empty leaves pruned", "leaves without a row have the value 0", pruned),
    Bug("labels from the rows", "the label's range, or the classes, are read off the rows", None, {}, from_labels),
    Bug(
        "exact denominators", "leaves divide by the exact number of rows", exact_counts,
        dict.fromkeys(_PRIVATREES, "its leaves have labels, no ratios"),
    ),
    Bug("a rule of n", "a parameter is set by the exact number of rows", None, {}, by_rows),
)  # fmt: skip
"""All bugs, the null row first."""
assert all(set(bug.absent) <= {system.name for system in SYSTEMS} for bug in BUGS)
