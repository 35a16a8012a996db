"""`audit_ledger`: rounds against closed forms, models held against ledgers, units shown only when public."""

import json
import math

import numpy as np
import pytest
from scipy import optimize, stats

import ledgerwood as lw
from ledgerwood.curator import RowVault
from ledgerwood.errors import LedgerCorrupted, LedgerError
from ledgerwood.pages.html import render
from ledgerwood.report.audits.pages import ledger_page
from ledgerwood.report.ledgers.audits import audit_ledger, moments, public_name
from ledgerwood.trainers import SGBDTRegressor

A = lw.Adjacency.ADD_REMOVE
BUDGET = lw.Budget(epsilon=3.0, delta=1e-5, adjacency=A)
NOISE = lw.GaussianEvent(noise_multiplier=8.0, adjacency=A)
SCHEMA = lw.Schema(features=(lw.Numeric("size", 0, 1),), target=lw.Numeric("price", 0, 10))


def run(place, **options):
    return audit_ledger(str(place), **{"dataset": None, "model": None, "vault": None, "public_data": False} | options)


def gaussian_epsilon(mu, delta):
    """Balle and Wang 2018, Theorem 8, inverted."""

    def gap(epsilon):
        return (
            stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu) - delta
        )

    return optimize.brentq(gap, 0.0, 50.0, xtol=1e-12)


@pytest.fixture
def ledger(tmp_path):
    """Two grants of Gaussian noise, the second one drawn in part."""
    place = tmp_path / "run.ledger.jsonl"
    with lw.Ledger.open(
        place, dataset="census", budget=BUDGET, unit=lw.PrivacyUnit.ROW, filter=lw.GDPFilter()
    ) as open_:
        open_.spend(NOISE, purpose="a mean")
        grant = open_.grant(lw.Repeated(NOISE, count=8), purpose="eight counts")
        for number in range(5):
            grant.draw(NOISE, purpose=f"count {number}")
    return place


def test_granted_and_drawn_are_sums_of_squares(ledger):
    found = run(ledger).moments
    assert [(m.draws, m.entry, m.drawn is None) for m in found] == [
        (0, 1, True), (1, 2, False), (1, 3, True), (2, 4, False), (3, 5, False), (4, 6, False), (5, 7, False),
        (6, 8, False),
    ]  # fmt: skip
    for moment in found:
        granted = 1 if moment.entry < 3 else 9
        assert moment.granted == pytest.approx(gaussian_epsilon(math.sqrt(granted) / 8, 1e-5), rel=1e-6)
        if moment.drawn is not None:
            assert moment.drawn == pytest.approx(gaussian_epsilon(math.sqrt(moment.draws) / 8, 1e-5), rel=1e-6)
            assert moment.drawn <= moment.granted


def test_basic_sums_are_added_grant_by_grant(tmp_path):
    place = tmp_path / "l.jsonl"
    pure = lw.PureEvent(epsilon=0.25, adjacency=A)
    with lw.Ledger.open(place, budget=BUDGET, unit=lw.PrivacyUnit.ROW) as ledger:
        first = ledger.grant(lw.Repeated(pure, count=4), purpose="four")
        second = ledger.grant(lw.Composed((pure, NOISE)), purpose="two", delta=1e-6)
        first.draw(pure, purpose="one")
        second.draw(NOISE, purpose="noise")
        second.draw(pure, purpose="pure")
    report, found = run(place).report, run(place).moments
    noise = gaussian_epsilon(1 / 8, 1e-6)
    drawn = [m.drawn for m in found if m.drawn is not None]
    assert drawn[0] == pytest.approx(0.25)
    assert drawn[1] == pytest.approx(0.25 + noise, rel=1e-6)
    assert drawn[2] == pytest.approx(0.25 + (found[-1].granted - 1.0))  # the second grant is drawn whole: its charge
    charged = math.fsum(charge.charge for charge in report.verdicts)
    assert charged <= found[-1].granted == pytest.approx(charged, rel=1e-15)
    # The verifier counts its own upper bounds, which are a little above exact charges, and never below them.
    counted = math.fsum(max(charge.charge, charge.upper) for charge in report.verdicts)
    assert found[-1].granted <= counted == pytest.approx(report.epsilon_readded, rel=1e-12)
    assert report.epsilon_readded <= 1.01 * found[-1].granted


def test_a_long_ledger_has_few_moments():
    ledger = lw.Ledger(lw.Budget(epsilon=200.0, delta=1e-5, adjacency=A), unit=lw.PrivacyUnit.ROW)
    for number in range(300):
        ledger.spend(lw.PureEvent(epsilon=0.5, adjacency=A), purpose=f"number {number}")
    found = moments(ledger.record())
    assert len(found) <= 24 + 120
    assert (found[-1].draws, found[-1].granted, found[-1].drawn) == (300, 150.0, 150.0)


@pytest.fixture
def trained(tmp_path, ledger):
    """A model that the ledger paid for, and a spend after it."""
    generator = np.random.default_rng(3)
    X = generator.uniform(size=(60, 1))
    with lw.Ledger.open(ledger) as open_:
        model = SGBDTRegressor(epsilon=0.5, delta=1e-5, schema=SCHEMA, n_estimators=2, max_depth=2)
        model.fit(X, 10 * X[:, 0], ledger=open_).save(tmp_path / "model")
        open_.spend(NOISE, purpose="later")
    return tmp_path / "model"


def test_a_model_is_found_among_the_entries(ledger, trained):
    found = run(ledger, model=trained)
    head = json.loads((trained / "model.json").read_text())["privacy"]["ledger_head"]
    assert [json.loads(line)["hash"] for line in ledger.read_text().splitlines()][found.backing.entry] == head
    assert found.backing.later == 2
    record = found.to_record()["model"]
    assert (record["ledger_head"], record["epsilon"]) == (head, found.backing.statement.epsilon)
    assert head in render(ledger_page(found))


def test_a_ledger_of_another_model_is_named_so(tmp_path, trained):
    with lw.Ledger.open(tmp_path / "other.jsonl", budget=BUDGET, unit=lw.PrivacyUnit.ROW) as other:
        other.spend(NOISE, purpose="else")
    with pytest.raises(LedgerError, match=r"other\.jsonl is another model's: none of its 3 entries has the hash"):
        run(tmp_path / "other.jsonl", model=trained)


def test_a_cut_ledger_is_another_models(ledger, trained):
    lines = ledger.read_text().splitlines(keepends=True)
    ledger.write_text("".join(lines[:4]))
    with pytest.raises(LedgerError, match="another model's"):
        run(ledger, model=trained)


def test_an_altered_ledger_is_refused(ledger):
    ledger.write_text(ledger.read_text().replace("a mean", "a mode"))
    with pytest.raises(LedgerCorrupted, match="entry 1"):
        run(ledger)


@pytest.mark.parametrize("filter_", [lw.BasicFilter(), lw.GDPFilter(), lw.AdvancedCompositionFilter(delta_prime=1e-6)])
def test_from_a_checkpoint_on_the_curve_is_that_of_the_whole_ledger(tmp_path, filter_):
    delta = None if isinstance(filter_, lw.GDPFilter) else 1e-7
    small = lw.GaussianEvent(noise_multiplier=40.0, adjacency=A)
    ledger = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW, filter=filter_)
    ledger.spend(small, purpose="drawn to the end", delta=delta)
    begun = ledger.grant(lw.Repeated(small, count=4), purpose="begun", delta=delta)
    begun.draw(small, purpose="first")
    kept = ledger.grant(small, purpose="kept", delta=delta)
    ledger.checkpoint()
    begun.draw(small, purpose="second")
    kept.draw(small, purpose="of kept")
    ledger.spend(small, purpose="after", delta=delta)
    whole, cut = ledger.record(), ledger.record().from_checkpoint()
    start, *rest = moments(cut)
    assert tuple(rest) == moments(whole)[-4:]
    last = moments(whole)[-5]
    assert (start.entry, start.draws, start.granted) == (6, last.draws, last.granted)
    assert start.drawn == moments(whole)[-6].drawn  # nothing was drawn of the grant that was kept
    cut.save(tmp_path / "cut.jsonl")
    page = render(ledger_page(run(tmp_path / "cut.jsonl")))
    assert "the 6 entries before it is trusted, and nobody added it up" in page


def test_a_model_before_and_after_a_checkpoint(ledger, trained):
    with lw.Ledger.open(ledger) as open_:
        open_.checkpoint()
        cut, place = open_.record().from_checkpoint(), ledger.with_name("cut.jsonl")
    cut.save(place)
    with pytest.raises(LedgerError, match=r"or that entry is one of the 15 before the checkpoint. Give the whole"):
        run(place, model=trained)
    with lw.Ledger.open(place, from_checkpoint=True) as open_:
        model = SGBDTRegressor(epsilon=0.1, delta=1e-5, schema=SCHEMA, n_estimators=1, max_depth=1)
        model.fit(np.zeros((9, 1)), np.zeros(9), ledger=open_).save(trained.with_name("later"))
        open_.checkpoint()
        last = open_.record()
    found = run(place, model=trained.with_name("later")).backing
    assert (found.entry, found.later) == (last.entries[-1].index - 1, 1)
    last.from_checkpoint().save(place.with_name("last.jsonl"))  # the checkpoint names the entry before it
    assert run(place.with_name("last.jsonl"), model=trained.with_name("later")).backing == found


@pytest.fixture
def stream(tmp_path):
    """A stream's ledger, and its vault."""
    generator = np.random.default_rng(4)
    X = generator.uniform(size=(80, 1))
    place, vault = tmp_path / "stream.jsonl", tmp_path / "units.vault"
    opened = lw.Ledger.open(place, budget=BUDGET, unit=lw.PrivacyUnit.ROW, filter=lw.GDPFilter())
    with opened as ledger, RowVault.open(vault) as units:
        model = SGBDTRegressor(epsilon=1.0, delta=1e-5, schema=SCHEMA, n_estimators=2, max_depth=2)
        model.partial_fit(X, 10 * X[:, 0], keys=list(range(80)), vault=units, ledger=ledger)
    return place, vault


def test_units_are_not_shown_unless_the_data_are_public(stream):
    place, vault = stream
    found = run(place, vault=vault)
    assert "--public-data" in found.individuals
    assert found.to_record()["individual_budgets"] == {"absent": found.individuals}
    page = render(ledger_page(found))
    assert "figure-individuals" not in page
    assert "--public-data" in page


def test_units_of_public_data_are_counted(stream):
    place, vault = stream
    found = run(place, vault=vault, public_data=True).individuals
    assert found.units == 80 == sum(found.spent)
    assert len(found.edges) == len(found.spent) + 1
    assert "figure-individuals" in render(ledger_page(run(place, vault=vault, public_data=True)))


def test_public_data_without_a_vault_say_so(ledger):
    assert "--vault" in run(ledger, public_data=True).individuals


def test_a_vault_of_another_stream_is_named_so(ledger, stream):
    with pytest.raises(LedgerError, match="another ledger's stream"):
        run(ledger, vault=stream[1], public_data=True)


def test_a_file_that_is_no_vault_is_refused(ledger, tmp_path):
    (tmp_path / "no.vault").write_text("no")
    with pytest.raises(LedgerCorrupted, match="not a row vault"):
        run(ledger, vault=tmp_path / "no.vault", public_data=True)


def test_test_randomness_is_no_good_news(tmp_path):
    ledger = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW)
    ledger.spend(NOISE, purpose="x", randomness="test")
    ledger.save(tmp_path / "l.jsonl")
    page = ledger_page(run(tmp_path / "l.jsonl"))
    assert page.tone == "bad"
    assert "guarantees no privacy" in page.sentence


def test_an_empty_ledger_has_a_page(tmp_path):
    lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW).save(tmp_path / "l.jsonl")
    assert "Nothing was granted yet" in render(ledger_page(run(tmp_path / "l.jsonl")))


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("/home/ada/secret/run.jsonl", "run.jsonl"),
        ("sqlite:////home/ada/team.db", "sqlite:///team.db"),
        ("postgresql+psycopg://ada:pass@host:5432/ledgers?password=x", "postgresql+psycopg://host/ledgers"),
    ],
)
def test_places_are_shown_without_folders_and_passwords(place, name):
    assert public_name(place) == name
