"""The checks of `check_trainer`, one after another; docs/explanation/replay.md#trainer-kit."""

import dataclasses
import inspect
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from sklearn.base import clone, is_regressor

from ledgerwood.accounting.adjacency import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.ledger import DrawEntry, GrantEntry, Ledger
from ledgerwood.accounting.pricing import price
from ledgerwood.curator import Categorical, DeclaredStatistic, Schema
from ledgerwood.curator.queries.declared import rehearsed
from ledgerwood.curator.queries.registry import name_of
from ledgerwood.errors import BudgetExceeded, InvalidParameter
from ledgerwood.recording.opening import recording
from ledgerwood.trainers.base.trainer import AbstractTrainer
from ledgerwood.verification.ledgers.verifying import verify_ledger
from ledgerwood.verification.noise.law import check_fit_noise
from ledgerwood.verification.replaying.replaying import replay
from ledgerwood.verification.sensitivity.checking import check_sensitivity
from ledgerwood.verification.sensitivity.domains import (
    Neighbour,
    added,
    replaced,
    worst_rows,
)
from ledgerwood.verification.testing.kit_models import (
    REFUSALS,
    noise_drawn,
    require_replay,
    same_arrays,
    same_predictions,
)
from ledgerwood.verification.testing.kit_neighbours import few_pairs, neighbours_of, rare_pairs
from ledgerwood.verification.testing.kit_reports import (
    Checks,
    Failure,
    Inapplicable,
    KitCheck,
    KitReport,
    not_released,
    require,
)
from ledgerwood.verification.testing.kit_rows import (
    ODD,
    Data,
    Heard,
    heard,
    kit_rows,
    kit_schema,
    odd_row,
    skewed_labels,
    typed_rows,
    with_row,
)

_ROUNDING = 1e-9
_COUNTING = frozenset({"BinCounts", "CellCounts", "FeatureQuantiles", "LeafCounts"})
"""Queries of this library that count rows whatever they weigh, and say so."""
_MOST_FITS = 200
_LEAST_NOISE = 50
"""Numbers of noise that a test of its distribution needs."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainerKit:
    """A trainer under test.

    Args:
        trainer: as given.
        schema: declared by it, or the kit's own; resolved.
        data: synthetic rows.
        replaces: whether a neighbour has a row replaced.
    """

    trainer: Any
    schema: Schema
    data: Data
    replaces: bool
    alpha: float
    seed: int

    @classmethod
    def of(cls, trainer: AbstractTrainer, n_rows: int, alpha: float, seed: int) -> "TrainerKit":
        schema = trainer.schema if isinstance(trainer.schema, Schema) else kit_schema(classes=not is_regressor(trainer))
        schema = schema.resolved(3)
        return cls(
            trainer=trainer, schema=schema, data=kit_rows(schema, n_rows, seed=seed), alpha=alpha, seed=seed,
            replaces=trainer.budget.adjacency is Adjacency.REPLACE_ONE,
        )  # fmt: skip

    def report(self) -> KitReport:
        checks = Checks()
        refused = self.refused()
        for name, check in self.checks().items():
            if refused is not None and name not in ("parameters", "plan", "fit"):
                checks.made.append(KitCheck(name=name, verdict="not looked at", why=refused))
            else:
                checks.make(name, check)
        return KitReport(of=type(self.trainer).__name__, checks=tuple(checks.made))

    def checks(self) -> dict[str, Callable[[], str | None]]:
        """All checks, by name."""
        return {
            "parameters": self.parameters,
            "plan": self.plan,
            "fit": self.fits,
            "predictions": self.predictions,
            "learns": self.learns,
            "replay": self.replays,
            "words on neighbours": self.words,
            "refusals": self.refusals,
            "weights": self.weights,
            "declared sensitivity": self.sensitivity,
            "noise": self.noise,
            "ledger": self.ledger,
            "shared ledger": self.shared_ledger,
            "save and load": self.saving,
            "estimated schema": self.estimated_schema,
            "adjacency": self.adjacencies,
        }

    def refused(self) -> str | None:
        """Why not even ordinary rows can be fitted; None where they can. Nothing else is looked at then."""
        with not_released():
            said, _ = heard(lambda: self.seeded(self.data))
        if not said.raised:
            return None
        if self.trainer.schema is None and said.raised[0].split(":")[0] in REFUSALS:
            return (
                f"the trainer does not fit rows of the kit's own schema ({' from '.join(said.raised)}): check "
                f"{type(self.trainer).__name__}(schema=...), with a schema that it takes"
            )
        return f"the trainer does not fit ordinary rows of its schema: {' from '.join(said.raised)}"

    def copy(self, **parameters: Any) -> Any:
        """An unfitted copy with the schema, and with these parameters."""
        return clone(self.trainer).set_params(**({"schema": self.schema} | parameters))

    def seeded(self, data: Any, **parameters: Any) -> Any:
        """A copy that was fitted with the kit's seed."""
        X, y, *weights = data
        named = {"sample_weight": weights[0]} if weights else {}
        return self.copy(random_state=self.seed + 1, **parameters).fit(X, y, **named)

    # ------------------------------------------------------------------------------------------------ one by one

    def parameters(self) -> str | None:
        before = self.trainer.get_params(deep=False)
        again = clone(self.trainer)
        after = again.get_params(deep=False)
        require(before.keys() == after.keys(), f"clone has the parameters {sorted(after)}, not {sorted(before)}")
        for name, value in before.items():
            require(repr(after[name]) == repr(value), f"clone changes {name}={value!r} to {after[name]!r}")
        signature = inspect.signature(type(self.trainer)).parameters
        require(set(before) == set(signature), "the constructor's arguments are not the parameters")
        fitted = sorted(name for name in vars(again) if name.endswith("_"))
        require(not fitted, f"an unfitted copy has {fitted}")
        return f"{len(before)} parameters"

    def plan(self) -> str | None:
        model = self.copy()
        first, second = model.make_plan(self.schema).event, model.make_plan(self.schema).event
        require(first == second, "two plans of the same parameters have different events")
        budget = model.budget
        require(first.adjacency is budget.adjacency, f"the event is under {first.adjacency.value}")
        cost = price(first).quote(budget.delta).epsilon
        require(
            cost <= budget.epsilon * (1.0 + _ROUNDING),
            f"the plan costs epsilon {cost!r} at delta {budget.delta!r}, and the budget is {budget.epsilon!r}",
        )
        return f"costs epsilon {cost:.6g} of {budget.epsilon:g}"

    def fits(self) -> str | None:
        with not_released():
            said, model = heard(lambda: self.seeded(self.data))
            require(not said.raised, f"it raises {' from '.join(said.raised)}")
            require(model.privacy_.epsilon == math.inf, "a seeded fit states a finite epsilon")
            again = self.seeded(self.data)
            secure = [self.copy(random_state=None).fit(*self.data) for _ in range(2)]
        require(same_predictions(model, again, self.data[0]), "two fits with one seed predict differently")
        require(
            not same_arrays(secure[0], secure[1]),
            "two fits without a seed released the same model: its noise is not fresh, or there is none",
        )
        require(
            secure[0].privacy_.epsilon <= self.trainer.budget.epsilon * (1.0 + _ROUNDING), "privacy_ exceeds the budget"
        )
        return None

    def predictions(self) -> str | None:
        with not_released():
            model = self.seeded(self.data)
        rows = self.data
        for odd in ODD:
            rows = with_row(rows, *odd_row(self.schema, odd))
        said, found = heard(lambda: model.predict(rows[0]))
        require(not said.raised, f"predict raises {' from '.join(said.raised)} of odd rows")
        require(len(found) == len(rows[0]), f"predict returns {len(found)} labels of {len(rows[0])} rows")
        target = self.schema.target
        if isinstance(target, Categorical):
            require(
                set(found.tolist()) <= set(target.categories), "predict returns a class that the schema does not have"
            )
            if callable(getattr(model, "predict_proba", None)):
                found = model.predict_proba(rows[0])
                require(found.shape == (len(rows[0]), len(model.classes_)), f"predict_proba has shape {found.shape}")
                require(np.allclose(found.sum(axis=1), 1.0), "probabilities do not sum to 1")
        require(np.isfinite(found).all() if found.dtype.kind == "f" else True, "predictions are not finite")
        return f"{len(rows[0])} rows, {len(ODD)} of them odd"

    def neighbours(self) -> dict[str, Neighbour[Any]]:
        """Neighbours of the rows; see `neighbours_of`."""
        return neighbours_of(self.data, self.schema, replaces=self.replaces, seed=self.seed)

    def rare(self) -> list[tuple[str, Data, Neighbour[Any]]]:
        """Data sets whose values hang on single rows; see `rare_pairs`."""
        return rare_pairs(self.schema, len(self.data[1]), replaces=self.replaces)

    def replays(self) -> str | None:
        def fit(data: Any) -> Any:
            # What is said is compared with the model: of the same releases a fit says the same.
            return heard(lambda: self.seeded(data))

        calls, share = 0, 0.0
        pairs = [(name, self.data, neighbour) for name, neighbour in self.neighbours().items()] + self.rare()
        pairs += few_pairs(self.schema, replaces=self.replaces, seed=self.seed)
        for name, data, neighbour in pairs:
            found = replay(fit, data, neighbour)
            require_replay(name, found)
            require(found.calls, f"{name}: nothing was granted, drawn or released")
            calls, share = len(found.calls), max(share, found.largest_share)
        require(share > 0.0, "no neighbour moved any release: what the model is made of was not seen")
        return f"{len(pairs)} neighbours, {calls} calls, largest share {share:.3g}"

    def words(self) -> str | None:
        def said(data: Data) -> Heard:
            return heard(lambda: self.seeded(data))[0]

        said(self.data)  # what is said once in a process is said here
        expected = said(self.data)
        require(not expected.raised, f"it raises {' from '.join(expected.raised)}")
        X, y = self.data
        cases = {f"{n} rows": (X[:n], y[:n]) for n in (0, 1, 2, len(y) - 1)}
        cases |= {f"a row more: {odd}": with_row(self.data, *odd_row(self.schema, odd)) for odd in ODD}
        cases |= {
            f"a row more: {name}": with_row(self.data, row, label) for name, row, label in worst_rows(self.schema)
        }
        cases["the labels exchanged"] = (X, y[::-1].copy())
        for name, data, neighbour in self.rare():
            cases[name] = neighbour.data
            cases[f"{name}, there"] = data
        for name, data in cases.items():
            difference = expected.difference(said(data))
            require(difference is None, f"{name}: {difference}")
        return f"{len(cases)} data sets"

    def refusals(self) -> str | None:
        budget, looked = self.trainer.budget, 0
        y = self.data[1]
        tiny = Budget(epsilon=budget.epsilon * 1e-3, delta=budget.delta, adjacency=budget.adjacency)
        other = kit_rows(self.schema, len(y), seed=self.seed + 9)
        parameters: list[dict[str, Any]] = [
            {"epsilon": -1.0},
            {"delta": 2.0},
            {"random_state": "seed"},
            {"schema": "none"},
        ]
        cases: dict[str, Callable[[Data, Ledger], Any]] = {
            f"{next(iter(each))}={next(iter(each.values()))!r}": lambda data, ledger, each=each: self.copy(**each).fit(  # type: ignore[misc]
                *data, ledger=ledger
            )
            for each in parameters
        }
        cases["fewer labels than rows"] = lambda data, ledger: self.copy().fit(data[0], data[1][:-1], ledger=ledger)
        cases["a column less"] = lambda data, ledger: self.copy().fit(data[0][:, :-1], data[1], ledger=ledger)
        cases["a ledger with too little"] = lambda data, ledger: self.copy().fit(*data, ledger=ledger)
        for name, case in cases.items():
            texts = []
            for data in (self.data, other, with_row(self.data, *odd_row(self.schema, "beyond the bounds"))):
                small = name == "a ledger with too little"
                ledger = Ledger(tiny if small else budget, unit=PrivacyUnit.ROW)
                before = ledger.entries
                with not_released():
                    said, _ = heard(lambda: case(data, ledger))  # noqa: B023 - called at once
                require(said.raised, f"{name} is not refused")
                require(
                    said.raised[0].split(":")[0] in REFUSALS,
                    f"{name} is refused by {said.raised[0].split(':')[0]}, which is no error of ledgerwood",
                )
                require(ledger.entries == before, f"{name} is refused after something was spent: {said.raised[0]}")
                texts.append(said)
                looked += 1
            for second in texts[1:]:
                difference = texts[0].difference(second)
                require(difference is None, f"{name}, on other values: {difference}")
        return f"{looked} refused fits"

    def learns(self) -> str | None:
        """With a large budget no worse than a constant, in whatever order the classes are declared."""
        target, budget = self.schema.target, self.trainer.budget
        orders = [target] if not isinstance(target, Categorical) else [
            # Weights of classes would have another class predicted than the commonest.
            dataclasses.replace(target, categories=each, weights=None)
            for each in (target.categories, target.categories[::-1])
        ]  # fmt: skip
        told = []
        for order in orders:
            schema = Schema(features=self.schema.features, target=order)
            X, _ = kit_rows(schema, 600, seed=self.seed + 2)
            y = skewed_labels(schema, X)
            with not_released():
                model = self.copy(schema=schema, epsilon=max(budget.epsilon, 100.0), random_state=self.seed + 1)
                predicted = model.fit(X, y).predict(X)
            if isinstance(order, Categorical):
                share, most = float(np.mean(predicted == y)), float(np.mean(y == order.categories[0]))
                require(
                    share >= most - 0.1,
                    f"with epsilon 100 and classes declared as {order.categories}, {share:.0%} of 600 rows are "
                    f"predicted right, and the commonest class has {most:.0%}: are classes exchanged? classes_ is "
                    "sorted, and the function of a DeclaredStatistic sees places in the declared order",
                )
                told.append(f"{share:.0%} of rows right, the commonest class has {most:.0%}")
            else:
                error = float(np.mean((predicted - y) ** 2) / np.var(y))
                require(error <= 1.5, f"with epsilon 100 the squared error is {error:.3g} of that of the mean label")
                told.append(f"squared error {error:.3g} of that of the mean label")
        return "; ".join(told)

    def weights(self) -> str | None:
        if "sample_weight" not in inspect.signature(type(self.trainer).fit).parameters:
            raise Inapplicable("fit takes no sample_weight")
        schema = Schema(features=self.schema.features, target=self.schema.target, weight_bound=2.0)
        X, y = self.data
        whole = np.full(len(y), 2.0)
        with not_released():
            said, _ = heard(lambda: self.copy(schema=schema).make_plan(schema))
            if said.raised and said.raised[0].split(":")[0] in REFUSALS:
                raise Inapplicable(f"a schema with a weight_bound is refused: {said.raised[0]}")
            first = self.seeded((X, y, whole), schema=schema)
            rest = np.where(np.arange(len(y)) < len(y) // 2, 2.0, 0.0)
            second = self.seeded((X, y, rest), schema=schema)
        require(not same_arrays(first, second), "half of the rows at weight 0 make the same model: weights are ignored")
        share, queries = {}, set()
        for weight in (0.0, 1.0, 2.0):
            row, label = next((row, label) for name, row, label in worst_rows(self.schema) if name == "highest")
            data: Any = (X, y, whole)
            neighbour = replaced(data, 3, row, label, weight) if self.replaces else added(data, row, label, weight)
            found = replay(lambda data: self.seeded(data, schema=schema), data, neighbour)
            require_replay(f"a row of weight {weight:g}", found)
            share[weight] = found.largest_share
            queries |= {name_of(call.fields["query"]) for call in found.calls if "query" in call.fields}
        if not self.replaces and share[0.0] > 0.0:
            counting = sorted(queries & _COUNTING)
            require(
                counting, f"a row of weight 0 moves a release by {share[0.0]:.3g} of what was paid: weights are ignored"
            )
            return f"{', '.join(counting)} count rows whatever they weigh"
        return "a row of weight 0 moves nothing" if not self.replaces else None

    def sensitivity(self) -> str | None:
        asked: dict[tuple[str, str], Any] = {}

        def release(original: Callable[..., Any], round_: Any, query: Any, mechanism: Any, *, purpose: str) -> Any:
            asked.setdefault((type(query).__name__, getattr(query, "name", "")), query)
            return original(round_, query, mechanism, purpose=purpose)

        with recording("kit", {"release": release}):
            self.seeded(self.data)
        declared = [query for query in asked.values() if isinstance(query, DeclaredStatistic)]
        if not declared:
            return f"proven in ledgerwood: {', '.join(sorted({name for name, _ in asked}))}"
        adjacency = self.trainer.budget.adjacency
        for query in declared:
            try:
                rehearsed(query, again=True)
            except InvalidParameter as error:
                raise Failure(str(error)) from error
            found = check_sensitivity(
                query, schema=self.schema, adjacency=adjacency, evaluations=150, rng=self.seed, bins=256
            )
            require(found.verdict != "refuted", f"{query.name}: {found}")
        return ", ".join(query.caveat for query in declared)

    def noise(self) -> str | None:
        drawn = noise_drawn(lambda: self.seeded(self.data))
        fits = 1 if drawn >= _LEAST_NOISE else min(_MOST_FITS, -(-_LEAST_NOISE // max(drawn, 1)))
        found = check_fit_noise(
            lambda: self.copy(random_state=None).fit(*self.data), fits=max(fits, 2), alpha=self.alpha, of="the fits"
        )
        require(not found.rejected, str(found))
        untested = ", ".join(f"{count} x {name}" for name, count in found.untested)
        require(not found.untested, f"not tested: {untested}")
        return str(found)

    def ledger(self) -> str | None:
        with not_released():
            model = self.copy(random_state=None).fit(*self.data)
        record, statement, budget = model.ledger_, model.privacy_, self.trainer.budget
        report = verify_ledger(record, head=statement.ledger_head)
        require(report.verdict == "confirmed", f"the ledger is {report.verdict}: {report.verdicts}")
        require(report.grants == 1, f"{report.grants} grants of one fit")
        cost = price(model.plan_.event).quote(statement.delta).epsilon
        require(
            statement.epsilon >= cost * (1.0 - _ROUNDING),
            f"privacy_ states epsilon {statement.epsilon!r}, and the plan costs {cost!r}",
        )
        require(statement.delta == budget.delta, f"privacy_ states delta {statement.delta!r}, not {budget.delta!r}")
        require(
            report.epsilon_readded <= statement.epsilon * (1.0 + 1e-3) + _ROUNDING,
            f"the ledger recomputes epsilon {report.epsilon_readded!r}, and privacy_ states {statement.epsilon!r}",
        )
        grants = [entry for entry in record.entries if isinstance(entry, GrantEntry)]
        require(grants[0].event == model.plan_.event, "what was granted is not the plan's event")
        statement.require_backing(model.plan_.event, record)
        planned = sum(count for _, count in model.plan_.event.draws())
        require(report.draws <= planned, f"{report.draws} draws of {planned} that were planned")
        return f"epsilon {report.epsilon_readded:.6g} recomputed, {report.draws} of {planned} planned draws"

    def shared_ledger(self) -> str | None:
        budget = self.trainer.budget
        both = Budget(epsilon=2.2 * budget.epsilon, delta=min(2.2 * budget.delta, 0.5), adjacency=budget.adjacency)
        ledger = Ledger(both, unit=PrivacyUnit.ROW)
        with not_released():
            models = [self.copy(random_state=None).fit(*self.data, ledger=ledger) for _ in range(2)]
            spent = ledger.spent().epsilon
            total = sum(model.privacy_.epsilon for model in models)
            require(spent >= total * (1.0 - 1e-6), f"two fits of {total!r} in all cost {spent!r} on one ledger")
            before = ledger.entries
            said, _ = heard(lambda: self.copy(random_state=None).fit(*self.data, ledger=ledger))
        require(
            said.raised and said.raised[0].startswith(BudgetExceeded.__name__),
            f"a third fit is not refused: {said.raised}",
        )
        require(ledger.entries == before, "a refused fit left entries on the ledger")
        return f"two fits spent {spent:.6g}, the third is refused"

    def saving(self) -> str | None:
        with not_released():
            model = self.copy(random_state=None).fit(*self.data)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            model.save(path)
            names = sorted(each.name for each in path.iterdir())
            require(names == ["arrays.npz", "ledger.jsonl", "model.json"], f"save writes {names}")
            again = type(model).load(path)
        require(same_predictions(model, again, self.data[0]), "the loaded model predicts differently")
        require(same_arrays(model, again), "the loaded model holds other values")
        for name in ("plan_", "privacy_", "ledger_", "schema_", "n_features_in_"):
            require(getattr(model, name) == getattr(again, name), f"{name} is not the same after loading")
        return ", ".join(names)

    def estimated_schema(self) -> str | None:
        rows = typed_rows(self.schema, kit_rows(self.schema, 400, seed=self.seed))
        ledger = Ledger(self.trainer.budget, unit=PrivacyUnit.ROW)
        before = ledger.entries
        with not_released():
            said, model = heard(lambda: self.copy(schema=None, random_state=None).fit(*rows, ledger=ledger))
        if said.raised:
            require(said.raised[0].split(":")[0] in REFUSALS, f"schema=None raises {said.raised[0]}")
            require(ledger.entries == before, f"schema=None is refused after something was spent: {said.raised[0]}")
            raise Inapplicable(f"schema=None is refused: {said.raised[0]}")
        require(model.plan_.purchase is not None, "schema=None was fitted by a plan that estimates no schema")
        drawn = [entry.purpose for entry in ledger.entries if isinstance(entry, DrawEntry)]
        require(any(each.startswith("schema: ") for each in drawn), "no draw estimates the schema")
        require(verify_ledger(ledger.record()).verdict == "confirmed", "the ledger is not confirmed")
        cost = price(model.plan_.event).quote(model.privacy_.delta).epsilon
        require(model.privacy_.epsilon >= cost * (1.0 - _ROUNDING), "privacy_ states less than the plan costs")
        require(cost <= self.trainer.budget.epsilon * (1.0 + _ROUNDING), "the plan exceeds the budget")
        return f"{len(drawn)} draws"

    def adjacencies(self) -> str | None:
        looked = []
        for adjacency in Adjacency:
            if adjacency is self.trainer.budget.adjacency:
                continue
            kit = TrainerKit(
                trainer=clone(self.trainer).set_params(adjacency=adjacency.value), schema=self.schema, data=self.data,
                replaces=adjacency is Adjacency.REPLACE_ONE, alpha=self.alpha, seed=self.seed,
            )  # fmt: skip
            with not_released():
                said, _ = heard(lambda: kit.copy().make_plan(kit.schema))  # noqa: B023 - called at once
            if said.raised:
                require(said.raised[0].split(":")[0] in REFUSALS, f"{adjacency.value} raises {said.raised[0]}")
                looked.append(f"{adjacency.value} is refused")
                continue
            kit.plan()
            for name, neighbour in list(kit.neighbours().items())[:3]:
                require_replay(f"{adjacency.value}, {name}", replay(kit.seeded, self.data, neighbour))
            looked.append(adjacency.value)
        return ", ".join(looked)
