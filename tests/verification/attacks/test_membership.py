"""Membership attacks: each score by hand, known models, private models within their price, and bad input."""

import json
import math

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

import ledgerwood as lw
from ledgerwood.accounting.risk import advantage, true_positive_rate
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor
from ledgerwood.verification.attacks.membership import ATTACKS, LEAST_SHADOWS, attack_model, random_halves
from ledgerwood.verification.attacks.scores import SCORES, Signals, signals_of

ROWS = 300
GENERATOR = np.random.default_rng(20_261_122)
X = GENERATOR.uniform(size=(ROWS, 3))
NUMBERS = X[:, 0] + GENERATOR.normal(0.0, 0.2, ROWS)
LABELS = GENERATOR.integers(0, 8, ROWS)  # of noise: nothing but memory knows them
MEMBERS = GENERATOR.random(ROWS) < 0.5
SPREAD = math.sqrt((ROWS + 1) / (12 * int(MEMBERS.sum()) * int((~MEMBERS).sum())))
"""Of the area under the curve, where members and others are alike (Mann and Whitney); ties make it smaller."""


def neighbour(X, y):
    return KNeighborsRegressor(1).fit(X, y)


def tree(X, y):
    return DecisionTreeClassifier(random_state=0).fit(X, y)


def attacked(fit, y, classes=None, **options):
    model = fit(X[MEMBERS], y[MEMBERS])
    return {found.attack: found for found in attack_model(model, X, y, MEMBERS, fit=fit, classes=classes, **options)}


class Ignorant:
    """Predicts noise that has nothing to do with its rows."""

    seeds = iter(range(10_000))

    def __init__(self, n_classes=None):
        self.generator = np.random.default_rng((7, next(self.seeds)))
        self.n_classes = n_classes

    def predict(self, X):
        return self.generator.normal(size=len(X))

    def predict_proba(self, X):
        return self.generator.dirichlet(np.ones(self.n_classes), len(X))


class Constant:
    def predict(self, X):
        return np.zeros(len(X))


# ------------------------------------------------------------------------------------------------------ known models


@pytest.mark.parametrize("classes", [None, tuple(range(8))])
@pytest.mark.parametrize("shadows", [8, 64])
def test_a_model_that_ignores_its_data_gives_nothing_away(classes, shadows):
    y = NUMBERS if classes is None else LABELS
    found = attacked(lambda *_: Ignorant(None if classes is None else 8), y, classes, shadows=shadows, alpha=1e-4)
    assert set(found) == set(ATTACKS)
    for reading in found.values():
        # Four standard deviations: 6e-5 each, of 16 readings in all.
        assert abs(reading.auc - 0.5) < 4.0 * SPREAD, reading
        for rate in reading.rates:
            assert rate.true_positive_low <= rate.false_positive_high


def test_a_constant_is_a_guess_exactly():
    for reading in attacked(lambda *_: Constant(), NUMBERS, shadows=4).values():
        if reading.attack == "loss":  # its labels are what differs, and that by chance
            assert abs(reading.auc - 0.5) < 4.0 * SPREAD
        else:
            assert (reading.auc, reading.advantage) == (0.5, 0.0)
            assert all(rate.true_positive_rate == 0.0 for rate in reading.rates)


def test_a_nearest_neighbour_gives_everybody_away():
    found = attacked(neighbour, NUMBERS, shadows=8)
    # Without models that have the row, one that all others get right by chance looks like one that nobody has.
    assert found.pop("lira offline").auc > 0.75
    # A gain of two is what a member has of those models alone that do not have it: others come close to it.
    assert found.pop("rmia").auc > 0.75
    for reading in found.values():
        assert reading.auc > 0.99, reading
        assert reading.advantage > 0.95
        assert all(rate.true_positive_rate > 0.9 for rate in reading.rates)


@pytest.mark.slow_after(1)  # many replays and searches
@pytest.mark.parametrize("fit", [tree, lambda X, y: RandomForestClassifier(20, random_state=1).fit(X, y)])
def test_trees_that_have_learned_their_rows_by_heart(fit):
    """Labels of noise: a row that was left out is right once in eight times."""
    for reading in attacked(fit, LABELS, tuple(range(8)), shadows=12).values():
        assert reading.auc > (0.75 if reading.attack == "lira offline" else 0.85), reading


def test_labels_alone_are_enough_for_a_threshold():
    class Labels:
        def __init__(self, model):
            self.predict = model.predict

    (found,) = attack_model(
        Labels(tree(X[MEMBERS], LABELS[MEMBERS])), X, LABELS, MEMBERS, attacks=("loss",), classes=tuple(range(8))
    )
    assert found.auc > 0.85
    assert found.shadows == 0


# ------------------------------------------------------------------------------------------------------ private models

SCHEMA = lw.Schema.uniform(0, 1, n_features=3, target=lw.Numeric("y", -1, 2))
CLASSES = lw.Schema.uniform(0, 1, n_features=3, target=lw.Categorical("y", (0, 1)))


@pytest.mark.slow  # many replays and searches
@pytest.mark.parametrize("classes", [None, (0, 1)])
def test_a_private_model_stays_within_its_price(classes):
    """At alpha 1e-3 an interval; three rates, four attacks, two models."""
    y = NUMBERS if classes is None else (LABELS > 3).astype(int)
    seeds = iter(range(100, 200))

    def fit(X, y):
        kind, schema = (SGBDTRegressor, SCHEMA) if classes is None else (SGBDTClassifier, CLASSES)
        return kind(epsilon=1.0, delta=1e-5, schema=schema, n_estimators=3, max_depth=2, random_state=next(seeds)).fit(
            X, y
        )

    model = fit(X[MEMBERS], y[MEMBERS])
    priced = lw.price(model.plan_.event)
    most = advantage(priced)
    for reading in attack_model(model, X, y, MEMBERS, fit=fit, shadows=8, classes=classes, alpha=1e-3):
        assert abs(reading.auc - 0.5) < 4.0 * SPREAD + most / 2.0, reading
        for rate in reading.rates:
            assert rate.true_positive_low <= true_positive_rate(priced, min(rate.false_positive_high, 1.0))


# ------------------------------------------------------------------------------------------------------------ by hand


def made_up(models, rows, *, error=False, seed=0):
    generator = np.random.default_rng(seed)
    likelihood = -np.abs(generator.normal(size=(models, rows)))
    shadow = Signals(generator.normal(size=(models, rows)), likelihood, error)
    target = Signals(generator.normal(size=rows), -np.abs(generator.normal(size=rows)), error)
    return target, shadow, random_halves(models, rows, generator)


@pytest.mark.parametrize("models", [6, 70])
def test_lira_is_the_ratio_of_two_normal_densities(models):
    target, shadow, halves = made_up(models, 9)
    online = SCORES["lira"](target, shadow, halves, 2.0)
    offline = SCORES["lira offline"](target, shadow, halves, 2.0)

    def deviation(side, i):
        if models >= 64:
            return shadow.confidence[side[:, i], i].std(ddof=1)
        left = [shadow.confidence[side[:, j], j] for j in range(9)]
        total = sum(((values - values.mean()) ** 2).sum() for values in left)
        return math.sqrt(total / sum(len(values) - 1 for values in left))

    for i in range(9):
        laws = [stats.norm(shadow.confidence[side[:, i], i].mean(), deviation(side, i)) for side in (halves, ~halves)]
        value = target.confidence[i]
        assert online[i] == pytest.approx(laws[0].logpdf(value) - laws[1].logpdf(value), rel=1e-8, abs=1e-9)
        assert stats.norm.cdf(offline[i]) == pytest.approx(laws[1].cdf(value), rel=1e-8)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("error", [False, True])
def test_rmia_counts_the_rows_that_gain_less(gamma, error):
    target, shadow, halves = made_up(6, 11, error=error, seed=3)
    found = SCORES["rmia"](target, shadow, halves, gamma)
    width = 2.0 * float(np.mean(-shadow.likelihood[~halves])) if error else 1.0
    ratio = np.exp(target.likelihood / width) / np.exp(shadow.likelihood / width).mean(axis=0)
    for i in range(11):
        beaten = sum(ratio[i] / ratio[j] >= gamma for j in range(11) if j != i)
        assert found[i] == beaten / 10


def test_confidence_is_the_log_odds_of_the_own_class():
    class Model:
        classes_ = ("b", "longest", "a")

        def predict_proba(self, X):
            return np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]])

    found = signals_of(Model(), np.zeros((2, 1)), np.array(["a", "b"]), ("a", "b", "longest"), "m")
    assert found.confidence == pytest.approx([math.log(0.3 / 0.7), math.log(1e-12)])
    assert found.likelihood == pytest.approx([math.log(0.3), math.log(1e-12)])


def test_a_class_that_a_shadow_never_saw_has_no_probability():
    model = tree(X[LABELS != 3], LABELS[LABELS != 3])
    found = signals_of(model, X, LABELS, tuple(range(8)), "m")
    assert (found.likelihood[LABELS == 3] == math.log(1e-12)).all()


@pytest.mark.parametrize("rounding", [None, 1])
def test_curves_are_those_of_scikit_learn(rounding):
    found = attacked(neighbour, NUMBERS + 0.0 * LABELS, attacks=("rmia",), shadows=4, keep_scores=True)["rmia"]
    scores = np.random.default_rng(4).normal(size=ROWS) + MEMBERS
    scores = scores if rounding is None else scores.round(rounding)
    kept = type(found.scores)(scores=scores, members=MEMBERS)
    false, true = kept.roc()
    wanted = roc_curve(MEMBERS, scores, drop_intermediate=False)
    np.testing.assert_allclose(false, wanted[0], atol=1e-12)
    np.testing.assert_allclose(true, wanted[1], atol=1e-12)
    assert found.auc == pytest.approx(roc_auc_score(MEMBERS, found.scores.scores), rel=1e-12)
    false, true = found.scores.roc()
    assert found.advantage == pytest.approx(float((true - false).max()), rel=1e-12)
    for rate in found.rates:
        allowed = false <= rate.asked + 1e-12
        assert rate.true_positive_rate == pytest.approx(true[allowed].max(), rel=1e-12)
        assert rate.false_positive_rate == pytest.approx(false[allowed].max(), rel=1e-12)
        assert rate.true_positive_low <= rate.true_positive_rate <= rate.true_positive_high
        members = int(MEMBERS.sum())
        if rate.true_positive_rate < 1.0:  # two-sided Clopper and Pearson, of scipy
            wanted = stats.binomtest(round(rate.true_positive_rate * members), members).proportion_ci(0.95)
            assert (rate.true_positive_low, rate.true_positive_high) == pytest.approx(tuple(wanted), rel=1e-6)


def test_every_row_is_in_half_of_the_shadow_models():
    halves = random_halves(10, 200, np.random.default_rng(0))
    assert (halves.sum(axis=0) == 5).all()
    # By itself: two rows are in the same half of the models with probability 1 / 252.
    assert len({tuple(row) for row in halves.T.tolist()}) > 100


# ------------------------------------------------------------------------------------------------------------- readings


def test_a_reading_says_that_it_is_no_bound_and_keeps_scores_only_if_asked():
    plain, kept = (attacked(tree, LABELS, tuple(range(8)), shadows=4, keep_scores=keep) for keep in (False, True))
    for attack in ATTACKS:
        record = plain[attack].to_dict()
        assert "not a bound on epsilon" in record["note"]
        assert "not a bound on epsilon" in str(plain[attack])
        assert json.loads(json.dumps(record))["attack"] == attack
        assert "scores" not in kept[attack].to_dict()
        assert plain[attack].scores is None
        assert kept[attack].scores.scores.shape == (ROWS,)
        assert kept[attack].auc == plain[attack].auc
        assert not any("epsilon" in name or "bound" in name for name in record)
        assert record["source"]


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if LEAST_SHADOWS[attack]])
def test_too_few_shadows_say_how_many(attack):
    with pytest.raises(InvalidParameter, match=f"shadows=1 must be a whole number >= {LEAST_SHADOWS[attack]}"):
        attacked(neighbour, NUMBERS, attacks=(attack,), shadows=1)
    assert attacked(neighbour, NUMBERS, attacks=(attack,), shadows=LEAST_SHADOWS[attack])[attack].auc > 0.5
    with pytest.raises(InvalidParameter, match="need shadow models: give fit="):
        attack_model(Constant(), X, NUMBERS, MEMBERS, attacks=(attack,))


class Strange:
    def __init__(self, result):
        self.result = result

    def predict(self, X):
        return self.result

    predict_proba = predict


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"members": np.ones(ROWS, bool)}, f"members has {ROWS} members and 0 others"),
        ({"members": np.zeros(ROWS, bool)}, "members has 0 members"),
        ({"members": MEMBERS.astype(int)}, "members type='int64' must be bool"),
        ({"members": MEMBERS[1:]}, "members shape"),
        ({"y": NUMBERS[1:]}, "y shape"),
        ({"X": X[:, 0]}, "X shape"),
        ({"y": np.array(["a"] * ROWS)}, "y holds values that are not numbers"),
        ({"classes": (0, 1)}, "y holds the label .*, which is not in classes"),
        ({"classes": ()}, "classes=.*at least one"),
        ({"model": object()}, "the model is an object, which has no predict"),
        ({"model": Strange(np.full(ROWS, np.nan))}, "the model predicts numbers that are not finite"),
        ({"model": Strange(np.zeros((ROWS, 2)))}, "the model predicts shape"),
        ({"model": Strange(["x"] * ROWS)}, "the model predicts values that are not numbers"),
        ({"attacks": ()}, "attacks=.*at least one"),
        ({"attacks": ("lyra",)}, "attacks='lyra' must be of 'loss', 'lira'"),
        ({"rates": (1.5,)}, "rates=1.5 must be in"),
        ({"rates": ()}, "rates=.*at least one"),
        ({"gamma": 0.0}, "gamma=0.0 must be > 0"),
        ({"alpha": 0.9}, "alpha=0.9"),
    ],
)
def test_bad_input_is_refused(change, words):
    given = {"model": Constant(), "X": X, "y": NUMBERS, "members": MEMBERS, "attacks": ("loss",)} | change
    with pytest.raises(InvalidParameter, match=words):
        attack_model(given.pop("model"), given.pop("X"), given.pop("y"), given.pop("members"), **given)


def test_bad_predictions_of_classes_are_refused():
    for result, words in (
        (np.zeros((ROWS, 3)), "returned 3 columns for 8 classes"),
        (np.zeros(ROWS), "predicts shape"),
        (np.full((ROWS, 8), np.inf), "not finite"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            attack_model(Strange(result), X, LABELS, MEMBERS, attacks=("loss",), classes=tuple(range(8)))
    with pytest.raises(InvalidParameter, match="shadow model 1 is a NoneType, which has no predict"):
        attack_model(Constant(), X, NUMBERS, MEMBERS, fit=lambda X, y: None)
