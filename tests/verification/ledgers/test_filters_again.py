"""The verifier's own filters: each forged term, charge or total of a ledger is found, and honest ones pass."""

import hashlib
import json
import math

import pytest

from ledgerwood.accounting import (
    Adjacency,
    AdvancedCompositionFilter,
    ApproximateEvent,
    BoundedRangeEvent,
    Budget,
    Composed,
    DiscreteGaussianEvent,
    GaussianEvent,
    GDPFilter,
    LaplaceEvent,
    Ledger,
    LedgerRecord,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    PrivacyUnit,
    PureEvent,
    RenyiEvent,
    RenyiFilter,
    Repeated,
    RepeatedSelection,
    SkellamEvent,
    ZCDPFilter,
    ZeroConcentratedEvent,
)
from ledgerwood.accounting.costs import concentrated, gdp
from ledgerwood.accounting.events.serial import to_json
from ledgerwood.errors import LedgerCorrupted
from ledgerwood.verification import verify_ledger
from ledgerwood.verification.ledgers import pairs as _pairs
from ledgerwood.verification.ledgers.atoms import mp, mpf
from ledgerwood.verification.ledgers.bounds.divergences import gaussian_epsilon, rho_bounds

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=2.0, delta=1e-5, adjacency=A)
GAUSSIAN = GaussianEvent(noise_multiplier=40.0, adjacency=A)
LAPLACE = LaplaceEvent(noise_multiplier=16.0, adjacency=A)
STEP = PoissonSampled(GaussianEvent(noise_multiplier=2.0, adjacency=A), sampling_rate=0.01)


def lines_of(filter_, plan=LAPLACE, delta=None):
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW, filter=filter_)
    ledger.grant(plan, purpose="one", delta=delta)
    ledger.grant(LAPLACE, purpose="two")
    return list(ledger.record().lines)


def verified(tmp_path, lines, index=None, change=None):
    """The report on the lines, entry `index` changed and all hashes from there on made right."""
    if index is not None:
        result, previous = [], "0" * 64
        for place, line in enumerate(lines):
            body = json.loads(line)
            body = (change(body) if place == index else body) | {"previous": previous}
            del body["hash"]
            previous = hashlib.sha256(text(body).encode()).hexdigest()
            result.append(text(body | {"hash": previous}))
        lines = result
    path = tmp_path / "edited.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    return verify_ledger(path)


def text(record):
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def with_charge(**fields):
    return lambda body: body | {"charge": body["charge"] | fields}


def with_filter(value):
    return lambda body: body | {"filter": value}


CASES = [
    (ZCDPFilter(), 1, lambda b: with_charge(rho=b["charge"]["rho"] * 0.98)(b), "rho .* is below"),
    (ZCDPFilter(), 1, with_charge(rho=0.2), "exceed the budget"),
    (ZCDPFilter(), 1, with_charge(rho=-0.1), "rho -0.1"),
    (ZCDPFilter(), 1, lambda b: b | {"charge": {"mu": 0.1, "method": "gdp"}}, "fields of the charge"),
    (ZCDPFilter(), 1, lambda b: b | {"event": to_json(STEP)}, "without a proven rho"),
    (ZCDPFilter(), 0, with_filter({"name": "zcdp"}), "unknown filter"),
    (ZCDPFilter(), 0, with_filter("renyi"), "unknown filter"),
    (ZCDPFilter(), 0, lambda b: b | {"budget": b["budget"] | {"delta": 0.0}}, "delta is too small"),
    (RenyiFilter(order=20.0), 1, lambda b: with_charge(divergence=b["charge"]["divergence"] * 0.999)(b), "is below"),
    (RenyiFilter(order=20.0), 1, with_charge(divergence=1.9), "exceed the budget"),
    (RenyiFilter(order=20.0), 1, with_charge(order=19.0), "is not the filter's"),
    (RenyiFilter(order=20.0), 1, with_charge(method="zcdp"), "fields of the charge"),
    (RenyiFilter(order=20.0), 0, with_filter({"name": "renyi", "order": 19.0}), "is not the filter's"),
    (RenyiFilter(order=20.0), 0, with_filter({"name": "renyi", "order": 1.0}), "unknown filter"),
    (RenyiFilter(order=20.0), 0, with_filter({"name": "renyi", "order": 20}), "unknown filter"),
    (RenyiFilter(order=20.0), 0, with_filter({"name": "renyi", "order": 20.0, "x": 1.0}), "unknown filter"),
    (AdvancedCompositionFilter(delta_prime=2e-6), 1, with_charge(epsilon=0.01), "is below what the plan costs"),
    (AdvancedCompositionFilter(delta_prime=2e-6), 1, with_charge(epsilon=0.5), "exceed the budget"),
    (AdvancedCompositionFilter(delta_prime=2e-6), 1, with_charge(delta=9e-6), "exceed the budget"),
    (
        AdvancedCompositionFilter(delta_prime=2e-6),
        0,
        with_filter({"name": "whitehouse", "delta_prime": 1e-4}),
        "delta is too small",
    ),
    (
        AdvancedCompositionFilter(delta_prime=2e-6),
        0,
        with_filter({"name": "whitehouse", "delta_prime": 0.0}),
        "unknown filter",
    ),
]


@pytest.mark.slow  # proves the bounds of forged ledgers
@pytest.mark.parametrize(("filter_", "index", "change", "match"), CASES)
def test_a_forger_is_held_to_the_filter(tmp_path, filter_, index, change, match):
    lines = lines_of(filter_)
    assert verified(tmp_path, lines).grants == 2
    with pytest.raises(LedgerCorrupted, match=match):
        verified(tmp_path, lines, index, change)


@pytest.mark.parametrize("order", [10.0, 20.0, 24.0])
def test_sampled_plans_are_re_added_at_the_filters_order(tmp_path, order):
    lines = lines_of(RenyiFilter(order=order), Repeated(STEP, count=50))
    report = verified(tmp_path, lines)
    spent = LedgerRecord.from_lines(lines).spent()
    assert report.epsilon_readded == pytest.approx(spent.epsilon, rel=1e-9)


def test_points_are_re_added_by_the_statement(tmp_path):
    lines = lines_of(AdvancedCompositionFilter(delta_prime=2e-6), Repeated(GAUSSIAN, count=2), 3e-6)
    report = verified(tmp_path, lines)
    spent = LedgerRecord.from_lines(lines).spent()
    assert report.epsilon_readded == pytest.approx(spent.epsilon, rel=1e-12)
    assert report.delta_readded == spent.delta == pytest.approx(5e-6, rel=1e-12)


HONEST = [
    GAUSSIAN,
    LAPLACE,
    PureEvent(epsilon=0.5, adjacency=A),
    BoundedRangeEvent(epsilon=1.0, adjacency=A),
    DiscreteGaussianEvent(scale=2.0, sensitivity=1, adjacency=A),
    ZeroConcentratedEvent(rho=0.125, adjacency=A),
    PoissonSampled(LAPLACE, sampling_rate=0.1),
    Composed((GAUSSIAN, Repeated(LAPLACE, count=3))),
    Parallel((GAUSSIAN, GaussianEvent(noise_multiplier=41.0, adjacency=A)), probabilities=(0.5, 0.5)),
    Parallel.worst((GAUSSIAN, LAPLACE)),
    PoissonSelection(PureEvent(epsilon=0.2, adjacency=A), mean=3.0),
    RepeatedSelection(LAPLACE, shape=0.0, stopping_rate=0.2),
    Composed((GAUSSIAN, RepeatedSelection(PureEvent(epsilon=0.1, adjacency=A), shape=-0.5, stopping_rate=0.01))),
]


@pytest.mark.slow_after(6)  # proves both bounds of each plan
@pytest.mark.parametrize("event", HONEST, ids=lambda event: type(event).__name__)
def test_the_least_rho_is_not_above_what_is_charged_and_the_most_is_not_far(event):
    with mp.workdps(50):
        found = rho_bounds(_pairs.parse(to_json(event)))
    assert found.lower <= found.upper
    # Of a Poisson number of runs nothing is known from below: a charge that is too small is unconfirmed.
    least = 0.0 if isinstance(event, PoissonSelection) else 0.9 * concentrated.rho(event)
    assert least <= found.lower <= concentrated.rho(event) * (1 + 1e-12)
    assert found.upper <= concentrated.rho(event) * (1 + 1e-2)


@pytest.mark.parametrize(
    "event",
    [
        STEP,
        PoissonSampled(GaussianEvent(noise_multiplier=1e4, adjacency=A), sampling_rate=1e-9),
        ApproximateEvent(epsilon=0.1, delta=1e-9, adjacency=A),
        RenyiEvent(orders=(2.0, 1e9), divergences=(0.01, 1.0), adjacency=A),
        SkellamEvent(variance=20.0, sensitivity=1, adjacency=A),
        Composed((GAUSSIAN, STEP)),
        Parallel((GAUSSIAN, STEP), probabilities=(0.5, 0.5)),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_has_no_rho_has_none_for_the_verifier(event):
    with pytest.raises(ValueError, match="without a proven rho"):
        rho_bounds(_pairs.parse(to_json(event)))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.05, 1e-12), (20.0, 1e-3)])
@pytest.mark.parametrize("name", ["zcdp", "renyi", "whitehouse"])
def test_a_ledger_that_is_spent_to_the_last_ulp_verifies(tmp_path, name, epsilon, delta):
    budget = Budget(epsilon=epsilon, delta=delta, adjacency=A)
    order = 2.0 * (1.0 + 12.0 * math.log(10.0) / epsilon)
    filter_ = {
        "zcdp": ZCDPFilter(),
        "renyi": RenyiFilter(order=order),
        "whitehouse": AdvancedCompositionFilter(delta_prime=delta / 2),
    }[name]
    ledger = Ledger(budget, unit=PrivacyUnit.ROW, filter=filter_)
    left = ledger.remaining()
    if left.rho is not None:
        event = ZeroConcentratedEvent(rho=left.rho, adjacency=A)
    elif left.divergence is not None:
        given = left.divergence * (1 - 1e-14)  # the event rounds its divergences up
        event = RenyiEvent(orders=(order,), divergences=(given,), adjacency=A)
    else:
        event = PureEvent(epsilon=left.epsilon, adjacency=A)
    ledger.grant(event, purpose="all")
    path = tmp_path / "spent.ledger.jsonl"
    ledger.save(path)
    assert verify_ledger(path).epsilon_readded == pytest.approx(epsilon, rel=1e-8)
    assert ledger.spent().epsilon <= epsilon


@pytest.mark.parametrize("multiplier", [1e100, 1.0, 1e-100])
@pytest.mark.parametrize("budget", [1e300, 1e-300])
def test_gaussian_totals_of_any_size_are_numbers(tmp_path, multiplier, budget):
    """Once "int too large to convert to float": e to the power of the budget was taken."""
    noise = GaussianEvent(noise_multiplier=multiplier, adjacency=A)
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW, filter=GDPFilter())
    ledger.grant(GAUSSIAN, purpose="one")
    lines = [json.loads(line) for line in ledger.record().lines]
    lines[0]["budget"]["epsilon"] = budget
    lines[1] |= {"event": to_json(noise), "charge": {"mu": 1 / multiplier, "method": "gdp"}}
    path, previous = tmp_path / "g.jsonl", "0" * 64
    with path.open("w") as file:
        for record in lines:
            body = {key: value for key, value in record.items() if key != "hash"} | {"previous": previous}
            previous = hashlib.sha256(text(body).encode()).hexdigest()
            file.write(text(body | {"hash": previous}) + "\n")
    if budget < 1 and multiplier < 1e100:
        with pytest.raises(LedgerCorrupted, match="entry 1: the grants exceed the budget"):
            verify_ledger(path)
        return
    report = verify_ledger(path)
    assert report.verdict == "confirmed"
    mu = 1 / multiplier
    wanted = {1e100: 0.0, 1.0: gdp.epsilon(1.0, 1e-5), 1e-100: mu * mu / 2}[multiplier]
    assert report.epsilon_readded == pytest.approx(wanted, rel=1e-9)


@pytest.mark.slow_after(4)  # proves the bounds of many plans
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.3, 1 - 1e-12])
@pytest.mark.parametrize("mu", [1e-3, 0.05, 1.0, 30.0])
def test_a_gaussian_pairs_epsilon_is_the_formulas_in_four_hundred_digits(mu, delta):
    with mp.workdps(60):
        found = gaussian_epsilon(mpf(mu) ** 2, mpf(delta))
    with mp.workdps(400):

        def profile(epsilon):  # Balle and Wang 2018, Theorem 8
            ends = [mp.erfc((epsilon / mpf(mu) + sign * mpf(mu) / 2) / mp.sqrt(2)) / 2 for sign in (-1, 1)]
            return ends[0] - mp.exp(epsilon) * ends[1]

        assert profile(found) <= delta
        assert found == 0 or profile(found * (1 - mpf(10) ** -15)) > delta


@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.3, 1 - 1e-12])
@pytest.mark.parametrize("mu", [1e4, 1e60, 1e150])
def test_a_large_gaussian_pairs_epsilon_is_a_quantile(mu, delta):
    """At x = epsilon / mu - mu / 2 the profile is P(N > x) less at most (|x| + 2) / mu of it; here |x| < 40."""
    with mp.workdps(60):
        found = gaussian_epsilon(mpf(mu) ** 2, mpf(delta))
    with mp.workdps(600):
        assert abs(found - mpf(mu) ** 2 / 2) <= 40 * mpf(mu) + found * mpf(10) ** -17
        if mu < 1e10:
            x = found / mpf(mu) - mpf(mu) / 2
            tail, room = mp.erfc(x / mp.sqrt(2)) / 2, (abs(x) + 2) / mpf(mu)
            assert tail * (1 - room) <= delta <= tail * (1 + mpf(10) ** -9)
