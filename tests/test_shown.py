"""What values show of themselves: short in a terminal, escaped in a notebook, whatever a user wrote into them."""

import dataclasses
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

import ledgerwood as lw
from ledgerwood import trainers, verification
from ledgerwood.accounting.ledger import LedgerAbout, LedgerRecord, Receipt
from ledgerwood.accounting.quotes import Quote
from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.pages.shown import LINES, WIDTH, Card, ShowsItself, Told
from ledgerwood.verification.ledgers.federations import ClientVerdict, FederationReport
from ledgerwood.verification.ledgers.filters import GrantVerdict
from ledgerwood.verification.ledgers.reports import LedgerFailure, LedgerReport

A = lw.Adjacency.ADD_REMOVE
HOSTILE = "<script>alert('x')</script><img src=x onerror=y>&\N{RIGHT-TO-LEFT OVERRIDE}"
PRINTED = HOSTILE.replace("\N{RIGHT-TO-LEFT OVERRIDE}", "")  # what a label may hold
MANY, COLUMNS = 300, 60
TAGS = {"div", "strong", "table", "tbody", "thead", "tr", "th", "td", "p", "details", "summary"}
BUDGET = lw.Budget(epsilon=9.0, delta=1e-4, adjacency=A)


class Elements(HTMLParser):
    """The tags of a page, and the names of their attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.texts.append(data)


def fitted(kind):
    """A model on many columns whose names are hostile."""
    target = lw.Categorical(PRINTED, ("no", f"yes {PRINTED}"))
    columns = tuple(lw.Numeric(f"{PRINTED}{i}", 0.0, 1.0) for i in range(COLUMNS))
    schema = lw.Schema(features=columns, target=target)
    rng = np.random.default_rng(0)
    y = np.array([str(label) for label in target.categories])[rng.integers(2, size=40)]
    return kind(epsilon=2.0, delta=1e-5, schema=schema).fit(rng.random((40, COLUMNS)), y)


@pytest.fixture(scope="module")
def seeds():
    """Large values of all kinds, from which the others are reached."""
    parts = tuple(lw.PureEvent(epsilon=1e-4 * (1 + i), adjacency=A) for i in range(MANY))
    ledger = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW, owner=PRINTED, description=PRINTED, opened="2026-11-28")
    grant = ledger.grant(lw.Composed(parts), purpose=PRINTED, delta=0.0)
    receipts = [grant.draw(part, purpose=PRINTED) for part in parts]
    for _ in range(30):
        ledger.spend(lw.GaussianEvent(noise_multiplier=50.0, adjacency=A), purpose=PRINTED, delta=1e-7)
    report = verification.verify_ledger(ledger.record())
    client = ClientVerdict(client=HOSTILE, ledger=report, sessions=(), notes=(HOSTILE,) * MANY)
    return [
        ledger,
        grant,
        receipts,
        ledger.record(),
        report,
        LedgerFailure(entry=3, reason=HOSTILE, entries=9, sound=report),
        FederationReport(server=report, clients=(client,) * MANY, notes=(HOSTILE,) * MANY),
        lw.price(lw.Composed(parts)),
        lw.price(lw.Composed(parts)).quote(0.0),
        fitted(trainers.PrivateBoostingClassifier),
        fitted(trainers.PrivaTreeClassifier),
        trainers.SGBDTRegressor(epsilon=0.5, learning_rate=0.3),
    ]


def reached(value, seen):
    """The value, and everything of this library that its fields and attributes hold."""
    if id(value) in seen or isinstance(value, np.ndarray | str | bytes | type):
        return
    seen[id(value)] = value
    inside = []
    if dataclasses.is_dataclass(value):
        inside = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        inside += [*value.keys(), *value.values()]
    elif isinstance(value, tuple | list):
        inside += value
    inside += vars(value).values() if type(value).__module__.startswith("ledgerwood") and _has_vars(value) else []
    for each in inside:
        reached(each, seen)


def _has_vars(value):
    return "__dict__" in dir(value)


@pytest.fixture(scope="module")
def values(seeds):
    seen = {}
    for seed in seeds:
        reached(seed, seen)
    return [value for value in seen.values() if type(value).__module__.startswith("ledgerwood")]


def test_no_value_floods_a_terminal(values):
    kinds = {}
    for value in values:
        kinds.setdefault(type(value), value)
        text = str(value)
        assert len(text) <= 2000, f"{type(value).__name__} prints {len(text):,} characters"
        assert text.count("\n") < 25, f"{type(value).__name__} prints {text.count(chr(10)) + 1} lines"
    assert set(kinds) >= {
        lw.Ledger, lw.Grant, Receipt, LedgerRecord, LedgerAbout, LedgerReport, LedgerFailure, FederationReport,
        GrantVerdict, lw.Price, Quote, lw.Composed, lw.Schema, lw.Numeric, lw.Categorical, trainers.PrivacyStatement,
        trainers.PrivateBoostingPlan, trainers.PrivaTreePlan, trainers.PrivateBoostingClassifier, Ensemble, Tree,
        TreeStructure, lw.Budget,
    }  # fmt: skip


def test_a_notebook_gets_no_markup_of_others(values):
    shown = [value for value in values if isinstance(value, ShowsItself | Told)]
    assert len({type(value) for value in shown}) >= 11
    for value in shown:
        page = Elements(text := value._repr_html_())
        assert set(page.tags) <= {
            "div",
            "strong",
            "table",
            "tbody",
            "thead",
            "tr",
            "th",
            "td",
            "p",
            "details",
            "summary",
        }
        assert page.attributes <= {"style", "scope"}
        assert len(text) < 60_000, type(value).__name__
        assert "color:#" not in text
        assert ET.fromstring(text).tag == "div"  # well formed
    hostile = [value for value in shown if PRINTED[:20] in "".join(Elements(value._repr_html_()).texts)]
    assert {type(value) for value in hostile} >= {lw.Ledger, lw.Grant, Receipt, LedgerReport, LedgerFailure, lw.Schema}


def test_audits_show_their_own_text():
    """Their classes are `Told`: the first line of the text comes first."""
    for name in ("Audit", "ModelAudit", "AttackReading", "NoiseCheck", "Replay", "SensitivityReport", "KitReport"):
        assert issubclass(getattr(verification, name), Told)


def test_what_is_shown_of_a_ledger_is_what_it_says(seeds):
    record = seeds[3]
    assert re.fullmatch(r"<LedgerRecord of 362 entries, head [0-9a-f]{12}>", repr(record))
    text = str(record)
    assert text.startswith("Ledger of 362 entries\n")
    assert f"owner: {PRINTED}" in text
    assert f"head: {record.head}" in text
    assert record.meaning in " ".join(text.split())
    assert str(seeds[0]) == text
    assert "the last 24 of 31 rows" in record._repr_html_()


def test_an_estimator_says_its_epsilon():
    assert repr(trainers.SGBDTRegressor()) == "SGBDTRegressor(epsilon=1.0, delta=1e-06)"
    asked = trainers.PrivateBoostingClassifier(epsilon=0.5, n_estimators=8)
    assert repr(asked) == "PrivateBoostingClassifier(epsilon=0.5, delta=1e-06, n_estimators=8)"


def test_a_fitted_one_says_what_was_paid(seeds):
    model = seeds[9]
    text = repr(model)
    assert f"<Schema of {COLUMNS} features, target" in text
    paid = re.search(r"\[paid: epsilon ([\d.]+) at delta 1e-05\]$", text)
    assert model.privacy_.epsilon <= float(paid[1]) <= model.privacy_.epsilon * (1 + 1e-5)
    assert len(text) <= 700
    seeded = trainers.SGBDTRegressor(schema=lw.Schema.uniform(0.0, 1.0, target=lw.Numeric("y", 0.0, 1.0)),
                                     random_state=0, n_estimators=2, max_depth=2)  # fmt: skip
    rng = np.random.default_rng(1)
    seeded.fit(rng.random((30, 2)), rng.random(30))
    assert repr(seeded).endswith("[paid: no guarantee, the noise is reproducible]")
    assert "this is no guarantee" in " ".join(str(seeded.privacy_).split())


def test_scikit_learns_diagram_still_works(seeds):
    for model in (seeds[9], seeds[11], make_pipeline(seeds[11])):
        page = estimator_html_repr(model)
        assert type(model).__name__ in page
        assert "<script>alert" not in page
    assert "epsilon" in repr(make_pipeline(seeds[11]))


def test_a_card_is_bounded_whatever_it_is_given():
    card = Card(title="t" * 999, facts=tuple((str(i), "v" * 999) for i in range(99)), notes=("n\n\x1b[31m" * 99,))
    lines = card.text().split("\n")
    assert len(lines) == LINES
    assert max(map(len, lines)) <= WIDTH
    assert "\x1b" not in card.text() + card.html()


def test_a_column_of_dates_is_shown_by_its_first_and_last_day():
    schema = lw.Schema(features=(lw.Date("opened", "2020-01-01", "2021-12-31", missing=True),))
    assert "2020-01-01 to 2021-12-31, or missing" in schema._repr_html_()
