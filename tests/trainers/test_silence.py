"""Neighbouring data sets are fitted in the same silence: warnings, logs, output and refusals are equal, byte for byte.

House rules 5 and 6: what a fit says follows from declared types and shapes, never from a value or the number of rows.
"""

import datetime as dt
import importlib
import inspect
import logging
import math
import pkgutil
import typing
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_regressor

import ledgerwood as lw
from ledgerwood import trainers
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.base.streams import AbstractStreamEstimator
from ledgerwood.trainers.choosing.private_search import PrivateSearch

FEATURES = (lw.Numeric("length", 0, 1), lw.Categorical("kind", ("u", "v")), lw.Numeric("age", 0, 9, missing=True))
TARGETS = {True: lw.Numeric("y", 0, 1), False: lw.Categorical("y", ("no", "yes"))}
THRESHOLDS = (0, 1, 2, 10, 21, 22, 23)
"""Numbers of rows, among them those at which scikit-learn begins or stops to talk. Cases take them in turn."""


def concrete(kind):
    """The estimators below a class that can be made."""
    found = [] if inspect.isabstract(kind) or kind.__name__.startswith("Abstract") else [kind]
    for below in kind.__subclasses__():
        found += concrete(below)
    return [each for each in found if each.__module__.startswith("ledgerwood.")]


def estimators():
    """Every estimator of the package, by looking at all of its modules."""
    for module in pkgutil.walk_packages(trainers.__path__, "ledgerwood.trainers."):
        importlib.import_module(module.name)
    return sorted(set(concrete(AbstractTreeEstimator)), key=lambda kind: kind.__name__)


def presets(kind):
    """The presets that the constructor's own annotation lists."""
    return typing.get_args(typing.get_type_hints(kind.__init__).get("preset", None)) or (None,)


CASES = [(kind, preset) for kind in estimators() for preset in presets(kind)]


def small(kind, preset, schema):
    """An estimator of few trees, whose noise and structures are the same in every fit."""
    if kind is PrivateSearch:
        plain = trainers.SGBDTClassifier()
        candidates = [{"n_estimators": 2, "max_depth": 1}, {"n_estimators": 3, "max_depth": 1}]
        return PrivateSearch(plain, candidates, epsilon=4.0, schema=schema, mean_runs=3.0, random_state=1)
    known = inspect.signature(kind).parameters
    options = {"n_estimators": 4, "max_depth": 2, "expected_rows": 1_000}
    named = {name: value for name, value in options.items() if name in known}
    if preset is not None:
        named["preset"] = preset
    return kind(epsilon=50.0, delta=1e-5, schema=schema, random_state=1, **named)


def target_of(kind):
    return TARGETS[kind is not PrivateSearch and is_regressor(kind())]


def rows(target, n):
    generator = np.random.default_rng(0)
    X = np.empty((n, 3), dtype=object)
    X[:, 0], X[:, 1] = generator.uniform(0, 1, n), np.where(np.arange(n) % 3, "u", "v")
    X[:, 2] = generator.uniform(0, 9, n)
    y = np.empty(n, dtype=object)
    y[:] = X[:, 0] if isinstance(target, lw.Numeric) else np.where(np.arange(n) % 2, "yes", "no")
    return X, y


class Liar:
    """A number by its own word, which it does not keep."""

    def __float__(self):
        raise RuntimeError("row 3 was read")

    def __len__(self):
        raise RuntimeError("row 3 was measured")

    def __eq__(self, other):
        raise RuntimeError("row 3 was compared")

    __hash__ = None


ODD = {
    "out of range": (1e6, "w", -5.0, 77.0),
    "no number": (math.nan, None, None, math.nan),
    "infinite": (math.inf, "u", -math.inf, -math.inf),
    "huge": (1e308, "v", -1e308, 1e308),
    "longer than a float": (10**400, 10**400, -(10**400), 10**400),
    "another class": (0.5, "another", 1.0, "another"),
    "nested": ([1.0], ["u"], [[1.0], 2.0], [10.0]),
    "arrays": (np.array(0.5), np.array(["u", "v"]), np.zeros((2, 2)), np.zeros(3)),
    "texts": ("0.5", 3, "nine", "0.7"),
    "foreign": (Liar(), Liar(), pd.NA, Liar()),
    "other types": (1 + 2j, b"u", dt.date(2020, 1, 1), {"a": 1}),
    "decimal": (Decimal("sNaN"), Decimal(3), Decimal("0.5"), Decimal("1e999")),
}


def with_row(X, y, odd, *, replacing):
    """The odd row in the place of the fourth one, or after it."""
    *cells, label = ODD[odd]
    row = np.empty((1, 3), dtype=object)
    row[0, :] = np.fromiter(cells, object, 3)
    last = np.fromiter([label], object, 1)
    rest = X[4:] if replacing else X[3:], y[4:] if replacing else y[3:]
    return np.concatenate([X[:3], row, rest[0]]), np.concatenate([y[:3], last, rest[1]])


def with_all(X, y):
    """One row of each odd kind among the others: if one of them alone made a fit talk, it would talk here."""
    for odd in ODD:
        X, y = with_row(X, y, odd, replacing=False)
    return X, y


def turned(values, turn):
    """The value whose turn it is."""
    values = list(values)
    return values[turn % len(values)]


def heard(fit, capfd):
    """All that a fit says: warnings, log records, both outputs, and what it raises."""
    records = []
    handler = logging.Handler(0)
    handler.emit = lambda record: records.append((record.name, record.levelno, record.getMessage()))
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(0)
    capfd.readouterr()
    raised = None
    try:
        with warnings.catch_warnings(record=True) as warned, np.errstate(all="warn"):
            warnings.simplefilter("always")
            try:
                fit()
            except Exception as error:  # noqa: BLE001  # whatever it is, it says something
                raised = (type(error), str(error))
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    said = [(each.category.__name__, str(each.message)) for each in warned]
    ours = [record for record in records if not record[0].startswith("numba")]
    return said, ours, tuple(capfd.readouterr()), raised


def test_every_estimator_is_among_them():
    public = {value for value in vars(trainers).values() if inspect.isclass(value) and hasattr(value, "predict")}
    public = {value for value in public if not value.__name__.startswith("Abstract")}
    assert public <= {kind for kind, _ in CASES}
    assert len({kind for kind, _ in CASES}) >= 10
    assert len(CASES) >= 25


@pytest.mark.slow  # a dozen fits of every preset
@pytest.mark.parametrize(("kind", "preset"), CASES)
def test_neighbours_are_fitted_in_the_same_silence(kind, preset, capfd):
    target = target_of(kind)
    schema = lw.Schema(features=FEATURES, target=target)

    def said(X, y):
        return heard(lambda: small(kind, preset, schema).fit(X, y), capfd)

    said(*rows(target, 30))  # what is said once in a process is said here
    expected = said(*rows(target, 30))
    assert expected[3] is None
    first, turn = preset == presets(kind)[0], CASES.index((kind, preset))
    for n in (0, 1, 22, 23, turned(THRESHOLDS, turn)) if first else (23, turned(THRESHOLDS, turn)):
        assert said(*rows(target, n)) == expected, n
    odd = turned(ODD, turn)
    assert said(*with_row(*rows(target, 22), odd, replacing=bool(turn % 2))) == expected, odd
    data = with_all(*rows(target, 10))
    assert said(*data) == expected
    if first:  # the others read rows by the same code
        assert said([list(row) for row in data[0]], list(data[1])) == expected
    # All of them odd: nothing is left.
    alone = with_row(*rows(target, 0), "nested", replacing=False)
    assert said(*alone) == expected


@pytest.mark.slow  # calibrates plans that buy a schema, and fits them
@pytest.mark.parametrize("kind", [kind for kind in estimators() if kind is not PrivateSearch])
def test_neighbours_without_a_schema(kind, capfd):
    target = target_of(kind)

    def said(X, y):
        frame = pd.DataFrame(
            {
                "length": np.array([value if isinstance(value, float) else math.nan for value in X[:, 0]], dtype=float),
                "kind": pd.Series(X[:, 1], dtype=object),
            }
        )
        model = small(kind, None, None)
        labels = list(y)
        if isinstance(target, lw.Numeric):  # a regressor asks for an array of numbers, which holds no odd type
            labels = np.array([value if isinstance(value, float) else math.nan for value in y], dtype=float)
        return heard(lambda: model.fit(frame, labels), capfd)

    said(*rows(target, 3_000))
    expected = said(*rows(target, 3_000))
    assert expected[3] is None
    assert said(*with_all(*rows(target, 2_988))) == expected
    assert said(*with_all(*rows(target, 2_987))) == expected
    turn = estimators().index(kind)
    for odd in (turned(ODD, turn), turned(ODD, turn + 6)):
        assert said(*with_row(*rows(target, 3_000), odd, replacing=turn % 2 == 0)) == expected, odd


@pytest.mark.slow  # many fits and plans
@pytest.mark.parametrize(
    "kind", [kind for kind in estimators() if "sample_weight" in inspect.signature(kind.fit).parameters]
)
def test_neighbouring_weights(kind, capfd):
    target = target_of(kind)
    schema = lw.Schema(features=FEATURES, target=target, weight_bound=2.0)
    X, y = rows(target, 12)
    model = small(kind, None, schema)
    odd = [7.0, -3.0, math.nan, math.inf, 0.0, [1.0], "1", None, Liar(), 10**400]
    one = turned(odd, estimators().index(kind))
    said = [
        heard(lambda weights=weights: model.fit(X, y, sample_weight=weights), capfd)
        for weights in ([1.0] * 12, [1.0] * 12, [1.0] * 11 + [one], [1.0] * 2 + odd, [0.0] * 12)
    ]
    assert all(each == said[1] for each in said[2:])
    assert said[1][3] is None


@pytest.mark.parametrize("kind", [kind for kind in estimators() if issubclass(kind, AbstractStreamEstimator)])
def test_neighbouring_streams(kind, capfd):
    target = target_of(kind)
    schema = lw.Schema(features=FEATURES, target=target)
    X, y = rows(target, 12)

    def said(keys, *, odd=None):
        def fit():
            model = small(kind, None, schema)
            data = (X, y) if odd is None else with_row(X, y, odd, replacing=True)
            model.partial_fit(*data, keys=keys)
            model.partial_fit(*data, keys=keys)

        return heard(fit, capfd)

    names = [f"unit {i}" for i in range(12)]
    said(names)
    expected = said(names)
    assert expected[3] is None
    keys = [None, math.nan, "", "a\0", 3, "unit 0", (), b"x", pd.NA, Liar(), 2.5, True]
    assert said(keys) == expected
    for key in (None, "unit 0", Liar()):
        assert said([*names[:11], key]) == expected, key
    for odd in ("nested", "foreign", "another class"):
        assert said(names, odd=odd) == expected, odd
