"""Analysts and their shares: fixed at opening, enforced with the budget, stored in the chain, seen by the verifier."""

import hashlib
import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting import (
    Adjacency,
    BasicFilter,
    Budget,
    GaussianEvent,
    GDPFilter,
    Ledger,
    LedgerRecord,
    PrivacyUnit,
    PureEvent,
    Repeated,
)
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.ledger import entries, state
from ledgerwood.errors import BudgetExceeded, InvalidParameter, LedgerCorrupted, LedgerError
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)
SHARES = {"ada": 0.5, "ben": 0.25}
BASIC = BasicFilter()


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def opened(place, analyst, analysts=SHARES, filter_=BASIC):
    return Ledger.open(
        place, dataset="adult", budget=BUDGET, unit=PrivacyUnit.ROW, filter=filter_, analysts=analysts, analyst=analyst
    )


def verified(place):
    return verify_ledger(place, dataset="adult")


@pytest.mark.slow_after(2)  # any sequence of grants
def test_nobody_spends_more_than_their_share(place):
    with opened(place, "ada") as ada:
        ada.spend(pure(0.4), purpose="most of it")
        with pytest.raises(BudgetExceeded, match=r"epsilon=0\.0999.* of epsilon=0\.5"):
            ada.grant(pure(0.2), purpose="there is budget, but not hers")
        assert ada.analyst == "ada"
        assert (ada.spent("ada").epsilon, ada.spent("ben").epsilon, ada.spent().epsilon) == (0.4, 0.0, 0.4)
        assert (ada.remaining("ben").epsilon, ada.remaining().epsilon) == (0.25, 0.6)
    with Ledger.open(place, dataset="adult", analyst="ben") as ben:
        ben.grant(pure(0.25), purpose="all of his")
        assert ben.remaining("ben").epsilon == 0.0
        assert [getattr(entry, "analyst", None) for entry in ben.entries] == [None, "ada", None, "ben"]
        assert {entry.version for entry in ben.entries} == {2}
    assert verified(place).epsilon_readded == 0.65


def test_two_analysts_at_once_each_see_their_own(tmp_path):
    url = f"sqlite:///{tmp_path}/team.db"
    with opened(url, "ada") as ada, opened(url, "ada") as again, opened(url, "ben") as ben:
        ada.grant(pure(0.3), purpose="p")
        ben.grant(pure(0.2), purpose="q")
        with pytest.raises(BudgetExceeded):
            again.grant(pure(0.3), purpose="the same analyst elsewhere")
        again.grant(pure(0.2), purpose="r")
        assert ben.spent("ada").epsilon == 0.5


@pytest.mark.slow_after(2)  # any sequence of grants
def test_all_that_remains_is_what_remains_of_the_share(place):
    with opened(place, "ada") as ada:
        grant = ada.grant(gaussian(30.0), purpose="all her delta")
        assert grant.charge.delta == 5e-6
        with pytest.raises(BudgetExceeded, match="no delta remains"):
            ada.grant(gaussian(30.0), purpose="more")


def test_whole_shares_fit_together(tmp_path):
    """Ten shares of 0.1 are the whole: a share is the decimal that is written, its limit is rounded down."""
    path = tmp_path / "ten.jsonl"
    names = [f"analyst {i}" for i in range(10)]
    for name in names:
        with opened(path, name, dict.fromkeys(names, 0.1)) as ledger:
            ledger.grant(gaussian(200.0), purpose="all of the delta")
            ledger.grant(pure(ledger.remaining(name).epsilon), purpose="all of the epsilon")
    report = verified(path)
    assert report.grants == 20
    assert 0.999 < report.epsilon_readded <= 1.0


def test_a_share_under_the_gaussian_filter_is_its_own_budget(tmp_path):
    path = tmp_path / "gdp.jsonl"
    mu = gdp.mu(0.5, 5e-6)
    with opened(path, "ada", filter_=GDPFilter()) as ada:
        ada.grant(gaussian(2**0.5 / mu * 1.0001), purpose="half of the square")
        ada.grant(gaussian(2**0.5 / mu * 1.0001), purpose="the other half")
        with pytest.raises(BudgetExceeded):
            ada.grant(gaussian(50 / mu), purpose="a bit more")
    assert verified(path).grants == 2


@pytest.mark.slow_after(2)  # any sequence of grants
def test_whoever_spends_says_who(place):
    with opened(place, None) as nobody:
        assert nobody.spent().epsilon == 0.0
        with pytest.raises(LedgerError, match=r"analyst= one of \['ada', 'ben'\]"):
            nobody.grant(pure(0.1), purpose="p")
        with pytest.raises(LedgerError, match="no analyst 'eve'"):
            nobody.spent("eve")
    for wrong, message in (("eve", "no analyst 'eve'"), (3, "no analyst 3")):
        with pytest.raises(LedgerError, match=message):
            Ledger.open(place, dataset="adult", analyst=wrong)
    with pytest.raises(LedgerError, match="analysts=.*cannot be reopened with analysts="):
        opened(place, "ada", {"ada": 1.0})


@pytest.mark.slow_after(2)  # any sequence of grants
def test_a_stranger_makes_no_ledger(place):
    for analysts in (SHARES, None):
        with pytest.raises(LedgerError, match="no analyst 'eve'"):
            opened(place, "eve", analysts)
    with opened(place, "ada") as ada:
        assert len(ada.entries) == 1


def test_a_ledger_without_analysts_has_none(tmp_path):
    path = tmp_path / "plain.jsonl"
    Ledger.open(path, budget=BUDGET, unit=PrivacyUnit.ROW).close()
    with pytest.raises(LedgerError, match="no analyst 'ada'; it has no analysts"):
        Ledger.open(path, analyst="ada")
    with pytest.raises(LedgerError, match="analysts="):
        Ledger.open(path, analysts=SHARES)
    assert '"version":1' in path.read_text()


@pytest.mark.parametrize(
    "analysts",
    [{}, {"ada": 0.0}, {"ada": -0.5}, {"ada": 1.5}, {"ada": float("nan")}, {"ada": 0.6, "ben": 0.5}, {"a\nb": 0.5},
     {"": 0.5}, {"ada": "half"}, ["ada"], {3: 0.5}],
)  # fmt: skip
def test_shares_are_parts_of_one_whole(tmp_path, analysts):
    with pytest.raises(InvalidParameter):
        opened(tmp_path / "a.jsonl", None, analysts)
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=50)
@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=6), st.floats(0.01, 50.0), st.floats(0.0, 0.5))
def test_limits_add_up_to_the_budget_at_most(weights, epsilon, delta):
    total = sum(weights)
    parts = [weight / total * (1 - 1e-15) for weight in weights]
    budget = Budget(epsilon=epsilon, delta=delta, adjacency=A)
    limits = [state.limit(budget, share) for share in parts]
    assert sum(Fraction(limit.epsilon) for limit in limits) <= Fraction(epsilon)
    assert sum(Fraction(limit.delta) for limit in limits) <= Fraction(delta)


@pytest.mark.slow  # any sequence of grants
@settings(max_examples=25)
@given(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=5), st.floats(0.1, 8.0), st.floats(1e-9, 1e-2))
def test_gaussian_shares_fit_into_the_whole(weights, epsilon, delta):
    """By basic composition: each share's mu passes under its own point, so all of them together under the whole."""
    total = sum(weights)
    budget = Budget(epsilon=epsilon, delta=delta, adjacency=A)
    limits = [state.limit(budget, weight / total * (1 - 1e-15)) for weight in weights]
    assert sum(gdp.mu(limit.epsilon, limit.delta) ** 2 for limit in limits) <= gdp.mu(epsilon, delta) ** 2


def lines():
    """A ledger of two analysts, by the state machine."""
    machine = state.State(state.opened(BUDGET, PrivacyUnit.ROW, BASIC, "adult", SHARES))
    for analyst in ("ada", "ben"):
        event = Repeated(pure(0.125), count=2)
        machine.commit(machine.propose_grant(event, machine.price(event, "p", None, analyst), "p", analyst))
    machine.commit(machine.propose_draw(1, pure(0.125), "d", "secure"))
    return [entries.encode(entry) for entry in machine.entries]


def rebuilt(index, change):
    """A forger's chain: entry `index` changed, every hash from there on made right again."""
    result, previous = [], "0" * 64
    for place, line in enumerate(lines()):
        body = json.loads(line) | {"previous": previous}
        if place == index:
            body = change(body)
        del body["hash"]
        previous = hashlib.sha256(entries.canonical(body).encode()).hexdigest()
        result.append(entries.canonical(body | {"hash": previous}))
    return result


def without(key):
    return lambda body: {name: value for name, value in body.items() if name != key}


@pytest.mark.parametrize(
    ("index", "change"),
    [
        (0, lambda body: body | {"analysts": {"ada": 0.5, "ben": 0.75}}),
        (0, lambda body: body | {"analysts": {"ada": 0.5, "ben": 0.0}}),
        (0, lambda body: body | {"analysts": {}}),
        (0, lambda body: body | {"analysts": ["ada", "ben"]}),
        (0, lambda body: body | {"analysts": None}),
        (0, without("analysts")),
        (0, lambda body: body | {"version": 3}),
        (0, lambda body: body | {"version": True}),
        (0, lambda body: body | {"version": 1}),
        (1, lambda body: body | {"analyst": "eve"}),
        (1, lambda body: body | {"analyst": None}),
        (1, lambda body: body | {"analyst": ["ada"]}),
        (1, without("analyst")),
        (1, lambda body: without("analyst")(body) | {"version": 1}),
        (1, lambda body: body | {"analyst": "ben"}),  # found at entry 2: his share is spent twice
        (2, lambda body: body | {"analyst": "eve"}),
        (3, lambda body: body | {"version": 1}),
        (3, lambda body: body | {"analyst": "ada"}),
    ],
)
def test_both_readers_refuse_forged_analysts(tmp_path, index, change):
    (tmp_path / "forged.jsonl").write_text("".join(line + "\n" for line in rebuilt(index, change)))
    whole = LedgerRecord.from_lines(tuple(lines()))
    assert whole.terms.analysts == (("ada", 0.5), ("ben", 0.25))
    with pytest.raises(LedgerCorrupted):
        state.replay(rebuilt(index, change))
    with pytest.raises(LedgerCorrupted, match=r"entry \d:"):
        verify_ledger(tmp_path / "forged.jsonl")


def test_a_later_version_is_named(tmp_path):
    with pytest.raises(LedgerCorrupted, match="entry 0: format version 5 is not one of"):
        state.replay(rebuilt(0, lambda body: body | {"version": 5}))
