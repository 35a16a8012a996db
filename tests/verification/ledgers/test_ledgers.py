"""What a stranger finds: every alteration, every price that is too small, every draw that was not granted."""

import dataclasses
import hashlib
import json
import tempfile
import threading
from pathlib import Path

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting import (
    Adjacency,
    BasicFilter,
    Budget,
    Composed,
    GaussianEvent,
    GDPFilter,
    LaplaceEvent,
    Ledger,
    Parallel,
    PoissonSampled,
    PrivacyUnit,
    PureEvent,
    Repeated,
    calibrate,
    price,
)
from ledgerwood.errors import LedgerCorrupted, LedgerError
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)
STEP = PoissonSampled(GaussianEvent(noise_multiplier=5.0, adjacency=A), sampling_rate=0.01)
STEP_AT_ONE = PoissonSampled(GaussianEvent(noise_multiplier=1.0, adjacency=A), sampling_rate=0.01)
FIFTH = GaussianEvent(noise_multiplier=5.0, adjacency=A)
TENTH = LaplaceEvent(noise_multiplier=10.0, adjacency=A)
LAPLACE = LaplaceEvent(noise_multiplier=8.0, adjacency=A)
PLAN = Composed((Repeated(STEP, count=3), LAPLACE))
BASIC = BasicFilter()
BELOW = "is below what the plan costs"


def ledger(filter_=BASIC, budget=BUDGET):
    return Ledger(budget, unit=PrivacyUnit.ROW, filter=filter_)


def example():
    book = ledger()
    grant = book.grant(PLAN, purpose="train", delta=5e-6)
    grant.draw(STEP, purpose="step 1")
    grant.draw(LAPLACE, purpose="score")
    book.grant(GaussianEvent(noise_multiplier=10.0, adjacency=A), purpose="more")
    return book


def write(folder, data):
    path = Path(folder) / "edited.jsonl"
    path.write_bytes(data if isinstance(data, bytes) else "".join(line + "\n" for line in data).encode())
    return path


def canonical(record):
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def rebuilt(lines, index, change):
    """A forger's ledger: entry `index` changed, every hash from there on made right again."""
    result, previous = list(lines[:index]), json.loads(lines[index - 1])["hash"] if index else "0" * 64
    for place, line in enumerate(lines[index:], start=index):
        body = json.loads(line) | {"previous": previous, "index": place}
        if place == index:
            body = change(body)
        del body["hash"]
        previous = hashlib.sha256(canonical(body).encode()).hexdigest()
        result.append(canonical(body | {"hash": previous}))
    return result


def with_charge(**fields):
    return lambda body: body | {"charge": body["charge"] | fields}


def by_method(lines, event, method):
    """The same ledger with its first grant charged by this method."""
    delta = json.loads(lines[1])["charge"]["delta"]
    quote = price(event, method=method).quote(delta)
    charge = {"epsilon": quote.epsilon, "delta": delta, "method": quote.method}
    order = {} if quote.order is None else {"order": quote.order}
    return rebuilt(lines, 1, lambda body: body | {"charge": charge | order})


LINES = by_method(example().record().lines, PLAN, "renyi")
LEAST = price(PLAN).epsilon_interval(json.loads(LINES[1])["charge"]["delta"])[0]  # what the first grant costs at least
DATA = "".join(line + "\n" for line in LINES).encode()


def test_the_report_says_what_the_ledger_says():
    book = example()
    report = verify_ledger(book.record(), head=book.head)
    assert book.spent().epsilon <= report.epsilon_readded <= 1.0001 * book.spent().epsilon
    assert report.delta_readded == book.spent().delta == 1e-5
    assert report.verdict == "confirmed"
    assert [(found.entry, found.verdict, found.currency) for found in report.verdicts] == [
        (1, "confirmed", "epsilon"),
        (4, "confirmed", "epsilon"),
    ]
    assert (report.epsilon_budget, report.delta_budget, report.adjacency) == (1.0, 1e-5, "add-remove")
    assert (report.grants, report.draws, report.randomness, report.head) == (2, 2, "secure", book.head)
    assert str(report).startswith("Ledger confirmed: 2 grants, 2 draws")
    one = dataclasses.replace(report, grants=1, draws=1)
    assert str(one).startswith("Ledger confirmed: 1 grant, 1 draw\n")
    assert (report.unit, report.filter, report.dataset) == ("row", "basic", None)


@pytest.mark.slow  # verifies many ledgers
def test_a_saved_file_and_the_record_give_the_same_report(tmp_path):
    book = example()
    book.save(tmp_path / "run.ledger.jsonl")
    assert verify_ledger(tmp_path / "run.ledger.jsonl") == verify_ledger(str(tmp_path / "run.ledger.jsonl"))
    assert verify_ledger(tmp_path / "run.ledger.jsonl") == verify_ledger(book.record())


@pytest.mark.slow  # verifies many ledgers
def test_a_long_training_run_verifies():
    def plan(s):
        return Repeated(
            PoissonSampled(GaussianEvent(noise_multiplier=s, adjacency=A), sampling_rate=0.01), count=10_000
        )

    book, multiplier = ledger(), calibrate(plan, BUDGET)
    book.grant(plan(multiplier), purpose="train")
    found = verify_ledger(book.record()).epsilon_readded
    assert book.spent().epsilon <= found <= 1.0 + 1e-4  # the multiplier is good to 3e-5, the bound too


def test_test_randomness_shows():
    book = ledger()
    book.spend(PureEvent(epsilon=0.1, adjacency=A), purpose="seeded", randomness="test")
    assert verify_ledger(book.record()).randomness == "test"


def test_a_gdp_ledger_is_re_added_in_mu():
    book = ledger(GDPFilter())
    for name in ("one", "two"):
        book.grant(GaussianEvent(noise_multiplier=6.0, adjacency=A), purpose=name)
    report = verify_ledger(book.record())
    assert report.epsilon_readded == pytest.approx(book.spent().epsilon, rel=1e-12)
    lines = list(book.record().lines)
    with pytest.raises(LedgerCorrupted, match=f"entry 1: .*{BELOW}"):
        verify_text(rebuilt(lines, 1, with_charge(mu=0.16)))
    with pytest.raises(LedgerCorrupted, match="entry 1: the grants exceed"):
        verify_text(rebuilt(lines, 1, with_charge(mu=0.3)))
    event = {"type": "PureEvent", "epsilon": 0.01, "adjacency": "add-remove"}
    with pytest.raises(LedgerCorrupted, match="entry 1: the plan is no Gaussian pair"):
        verify_text(rebuilt(lines, 1, lambda body: body | {"event": event}))


def verify_text(lines, head=None):
    with tempfile.TemporaryDirectory() as folder:
        return verify_ledger(write(folder, lines), head=head)


@pytest.mark.slow  # verifies a ledger for each byte
@settings(max_examples=300)
@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_any_byte_that_is_changed_is_found(place, change):
    edited = bytearray(DATA)
    edited[place] ^= change
    with pytest.raises((LedgerCorrupted, LedgerError)):
        verify_text(bytes(edited))


@pytest.mark.slow  # verifies a ledger for each byte
@settings(max_examples=60)
@given(st.integers(0, len(DATA) - 2))
def test_any_byte_that_is_removed_or_doubled_is_found(place):
    for edited in (DATA[:place] + DATA[place + 1 :], DATA[: place + 1] + DATA[place:]):
        with pytest.raises(LedgerCorrupted):
            verify_text(edited)


@pytest.mark.parametrize("index", range(len(LINES)))
def test_a_changed_entry_is_named(index):
    edited = [line.replace('"version":1', '"version":1.0') if i == index else line for i, line in enumerate(LINES)]
    with pytest.raises(LedgerCorrupted, match=f"entry {index}:"):
        verify_text(edited)


@pytest.mark.slow_after(22)  # verifies many ledgers
@pytest.mark.parametrize("first", range(len(LINES)))
@pytest.mark.parametrize("second", range(len(LINES)))
def test_swapped_entries_are_found_at_the_first(first, second):
    if first >= second:
        return
    edited = list(LINES)
    edited[first], edited[second] = edited[second], edited[first]
    with pytest.raises(LedgerCorrupted, match=f"entry {first}:"):
        verify_text(edited)


@pytest.mark.parametrize("index", range(len(LINES) - 1))
def test_an_entry_removed_from_the_middle_is_found_where_it_was(index):
    with pytest.raises(LedgerCorrupted, match=f"entry {index}:"):
        verify_text(LINES[:index] + LINES[index + 1 :])


def test_a_cut_tail_is_found_against_the_head_only():
    head = json.loads(LINES[-1])["hash"]
    report = verify_text(LINES[:-1])
    assert report.head != head
    with pytest.raises(LedgerCorrupted, match="tail was cut off"):
        verify_text(LINES[:-1], head)
    with pytest.raises(LedgerCorrupted, match="chain was rebuilt"):
        verify_text(rebuilt(LINES, 2, lambda body: body | {"purpose": "other"}), head)


@pytest.mark.slow_after(1)  # verifies many ledgers
@pytest.mark.parametrize(
    ("index", "change", "match"),
    [
        (1, lambda b: with_charge(epsilon=0.99 * LEAST)(b), BELOW),
        (1, with_charge(epsilon=0.0), BELOW),
        (1, with_charge(epsilon=LEAST * (1 + 1e-3), delta=4e-6), BELOW),
        (1, with_charge(method="guess"), "fields of the charge"),
        (1, with_charge(order=1.0), "order"),
        (1, with_charge(delta=0.0), "delta is 0"),
        (1, with_charge(epsilon=1.5), "exceed the budget"),
        (1, lambda b: b | {"charge": {"epsilon": 0.3, "delta": 0.0, "method": "pure"}}, f"{BELOW}, at least inf"),
        (1, lambda b: b | {"charge": {"mu": 0.1, "method": "gdp"}}, "fields of the charge"),
        (1, lambda b: b | {"event": 3}, "not the record"),
        (1, lambda b: b | {"purpose": ""}, "label"),
        (2, lambda b: b | {"grant": 0}, "no grant 0"),
        (2, lambda b: b | {"randomness": "none"}, "randomness"),
        (2, lambda b: b | {"event": b["event"] | {"sampling_rate": 0.5}}, "was not granted"),
        (3, lambda b: b | {"event": json.loads(LINES[2])["event"], "grant": 4}, "no grant 4"),
        (4, lambda b: with_charge(epsilon=b["charge"]["epsilon"] * (1 - 1e-7))(b), BELOW),
        (0, lambda b: b | {"filter": "laplace"}, "filter"),
        (0, lambda b: b | {"unit": "house"}, "unit"),
        (0, lambda b: b | {"budget": b["budget"] | {"adjacency": "replace-one"}}, "adjacency is not"),
        (0, lambda b: b | {"budget": b["budget"] | {"epsilon": 0.0}}, "not positive"),
        (0, lambda b: b | {"budget": b["budget"] | {"delta": 1.0}}, "no probability"),
        (0, lambda b: b | {"budget": b["budget"] | {"epsilon": 0.01}}, "exceed the budget"),
        (0, lambda b: b | {"version": 2}, "version"),
        (0, lambda b: b | {"kind": "grant"}, "fields"),
    ],
)
def test_a_forger_who_rebuilds_the_chain_is_held_to_the_rules(index, change, match):
    with pytest.raises(LedgerCorrupted, match=match):
        verify_text(rebuilt(LINES, index, change))


NEAR_ONE = PoissonSampled(GaussianEvent(noise_multiplier=8.0, adjacency=A), sampling_rate=0.999)


@pytest.mark.slow_after(5)  # verifies many ledgers
@pytest.mark.parametrize(
    ("event", "delta", "asked", "method"),
    [
        (PureEvent(epsilon=0.25, adjacency=A), 0.0, "pure", "pure"),
        (Repeated(LAPLACE, count=3), 0.0, "pure", "pure"),
        (PoissonSampled(LAPLACE, sampling_rate=0.5), 0.0, "pure", "pure"),
        (PoissonSampled(LAPLACE, sampling_rate=0.5), 1e-6, "profile", "profile"),
        (PoissonSampled(NEAR_ONE, sampling_rate=0.1), 1e-6, "profile", "profile"),
        (Repeated(NEAR_ONE, count=2), 1e-6, "renyi", "unsampled"),
        (Repeated(STEP, count=3), 1e-6, "renyi", "renyi"),
    ],
)
def test_every_method_is_held_to_its_own_number(event, delta, asked, method):
    book = ledger()
    book.grant(event, purpose="p", delta=delta)
    lines = by_method(book.record().lines, event, asked)
    charge = json.loads(lines[1])["charge"]
    assert charge["method"] == method
    assert verify_text(lines).grants == 1
    with pytest.raises(LedgerCorrupted, match=f"entry 1: .*{BELOW}"):
        # a coarser method charges more than the plan costs: then it is held to the certified lower end of the cost
        least = charge["epsilon"] if method in ("pure", "profile") else price(event).epsilon_interval(delta)[0]
        share = 1 - 1e-7 if method in ("pure", "profile") else 0.99
        verify_text(rebuilt(lines, 1, with_charge(epsilon=least * share)))


@pytest.mark.slow  # composes losses by both implementations
@pytest.mark.parametrize(
    ("event", "delta", "reference"),
    [
        (Repeated(STEP_AT_ONE, count=10_000), 1e-5, 6.187712),
        (
            Composed((Repeated(TENTH, count=10), Repeated(FIFTH, count=10), Repeated(STEP_AT_ONE, count=1000))),
            1e-5,
            3.517512,
        ),
    ],
)
def test_composed_losses_are_held_to_a_ten_thousandth(event, delta, reference):
    """References: inversion of the losses' moment generating function, six decimals."""
    book = ledger(budget=Budget(epsilon=8.0, delta=1e-5, adjacency=A))
    book.grant(event, purpose="p", delta=delta)
    lines = book.record().lines

    def with_epsilon(epsilon):
        charge = {"epsilon": epsilon, "delta": delta, "method": "pld"}
        return rebuilt(lines, 1, lambda body: body | {"charge": charge})

    assert verify_text(with_epsilon(reference + 2e-6)).grants == 1
    with pytest.raises(LedgerCorrupted, match=f"entry 1: .*{BELOW}"):
        verify_text(with_epsilon(reference * (1 - 1e-4)))


ENDLESS = [  # leaves that a forger may state at no cost, and that take for ever if each is integrated or enumerated
    {"type": "GaussianEvent", "noise_multiplier": 1e-9},
    {"type": "GaussianEvent", "noise_multiplier": 1e-150},
    {"type": "LaplaceEvent", "noise_multiplier": 1e-9},
    {"type": "PureEvent", "epsilon": 1e9},
    {"type": "DiscreteLaplaceEvent", "scale": 1.0, "sensitivity": 10**9},
    {"type": "DiscreteGaussianEvent", "scale": 1e9, "sensitivity": 1},
    {"type": "DiscreteGaussianEvent", "scale": 1e-9, "sensitivity": 1},
]


@pytest.mark.slow  # the costliest ledgers that a forger can write
@pytest.mark.parametrize("leaf", ENDLESS)
@pytest.mark.parametrize("charge", [{"method": "renyi", "order": 1.5}, {"method": "profile"}, {"method": "pld"}])
def test_no_forged_noise_stalls_the_verifier(leaf, charge):
    """It ends, either way: what was charged here, 1 nat for 1000 sampled draws, is a forgery where a bound is found."""
    sampled = {"type": "PoissonSampled", "event": leaf | {"adjacency": "add-remove"}, "sampling_rate": 0.01}
    event = {"type": "Repeated", "event": sampled, "count": 1000} if charge["method"] != "profile" else sampled
    lines = rebuilt(
        LINES[:2], 1, lambda body: body | {"event": event, "charge": charge | {"epsilon": 1.0, "delta": 1e-6}}
    )
    with pytest.raises(LedgerCorrupted, match=f"entry 1: .*({BELOW}|is not a|over too many integers)"):
        verify_text(lines)


@pytest.mark.slow  # verifies many ledgers
def test_honest_ledgers_of_tiny_multipliers_are_accepted():
    book = ledger(budget=Budget(epsilon=1e12, delta=1e-5, adjacency=A))
    tiny = PoissonSampled(GaussianEvent(noise_multiplier=1e-4, adjacency=A), sampling_rate=0.01)
    charge = book.grant(Repeated(tiny, count=3), purpose="p", delta=1e-6).charge
    assert charge.method in ("renyi", "unsampled")
    assert verify_ledger(book.record()).grants == 1


@pytest.mark.parametrize(("multiplier", "rate"), [(12.6, 1e-4), (0.5, 1e-9), (1e3, 0.3)])
def test_laplace_samples_that_cost_next_to_nothing_are_integrated(multiplier, rate):
    """Moments of 1e-20 are as good as any: at order 1.000001 delta covers all, and epsilon is 0."""
    event = Repeated(
        PoissonSampled(LaplaceEvent(noise_multiplier=multiplier, adjacency=A), sampling_rate=rate), count=2
    )
    book = ledger()
    book.grant(event, purpose="p", delta=9e-6)
    assert verify_text(by_method(book.record().lines, event, "renyi")).grants == 1


@pytest.mark.slow  # verifies many ledgers
def test_threads_wait_for_each_other_at_the_verifier():
    """One working precision serves all threads: each gets the report that it would get alone."""
    gdp = ledger(GDPFilter())
    gdp.grant(GaussianEvent(noise_multiplier=6.0, adjacency=A), purpose="p")
    small = ledger(budget=Budget(epsilon=1.0, delta=1e-300, adjacency=A))
    small.grant(GaussianEvent(noise_multiplier=60.0, adjacency=A), purpose="p")  # needs 350 digits, the others 50
    records = [example().record(), gdp.record(), small.record()]
    alone = [verify_ledger(record) for record in records]
    found: dict[int, list[object]] = {i: [] for i in range(6)}

    def work(i):
        for turn in range(3):
            try:
                found[i].append(verify_ledger(records[(i + turn) % 3]))
            except LedgerCorrupted as error:
                found[i].append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: [alone[(i + turn) % 3] for turn in range(3)] for i in found}


def test_a_sampled_plan_is_not_renamed_to_replace_one():
    lines = [line.replace("add-remove", "replace-one") for line in LINES]
    with pytest.raises(LedgerCorrupted, match="entry 1: PoissonSampled has no privacy bound under replace-one"):
        verify_text(rebuilt(lines, 0, lambda body: body))


@pytest.mark.slow  # composes losses by both implementations
def test_groups_of_mixed_compositions_verify():
    mixed = Composed((LAPLACE, GaussianEvent(noise_multiplier=9.0, adjacency=A)))
    book = ledger(budget=Budget(epsilon=2.0, delta=1e-5, adjacency=A))
    book.grant(Parallel((mixed, LAPLACE), probabilities=(0.5, 0.25)), purpose="groups", delta=1e-6)
    book.grant(Parallel.worst((mixed, Repeated(LAPLACE, count=2))), purpose="worst", delta=1e-6)
    lines = book.record().lines
    assert [json.loads(line)["charge"]["method"] for line in lines[1:]] == ["pld", "pld"]
    assert verify_text(lines).grants == 2
    by_renyi = by_method(lines, Parallel((mixed, LAPLACE), probabilities=(0.5, 0.25)), "renyi")
    assert verify_text(by_renyi).grants == 2


@pytest.mark.slow  # composes losses by both implementations
@pytest.mark.parametrize(
    "event",
    [
        PoissonSampled(Composed((*[GaussianEvent(noise_multiplier=3.0, adjacency=A)] * 6, TENTH)), sampling_rate=0.1),
        PoissonSampled(Repeated(LaplaceEvent(noise_multiplier=1.0, adjacency=A), count=2), sampling_rate=0.1),
        Repeated(
            PoissonSampled(
                Composed((LaplaceEvent(noise_multiplier=1.0, adjacency=A), STEP_AT_ONE.event)), sampling_rate=0.01
            ),
            count=1000,
        ),
    ],
)
def test_samples_of_mixed_compositions_are_held_to_a_hundredth(event):
    book = ledger(budget=Budget(epsilon=8.0, delta=1e-5, adjacency=A))
    book.grant(event, purpose="p", delta=1e-5)
    lines = book.record().lines
    charge = json.loads(lines[1])["charge"]
    assert charge["method"] == "pld"
    assert verify_text(lines).grants == 1
    with pytest.raises(LedgerCorrupted, match=f"entry 1: .*{BELOW}"):
        verify_text(rebuilt(lines, 1, with_charge(epsilon=charge["epsilon"] * (1 - 1e-2))))


def test_the_working_precision_of_others_does_not_matter():
    budget = Budget(epsilon=2.0, delta=1e-5, adjacency=A)
    book = ledger(GDPFilter(), budget)
    mu = book.grant(GaussianEvent(noise_multiplier=3.0, adjacency=A), purpose="p").charge.mu
    lines = book.record().lines
    with mpmath.mp.workdps(2):
        assert verify_text(lines).grants == 1
        with pytest.raises(LedgerCorrupted, match=BELOW):
            verify_text(rebuilt(lines, 1, with_charge(mu=mu * (1 - 1e-4))))
        assert mpmath.mp.dps == 2


def test_one_draw_too_many_is_found():
    book = ledger()
    book.grant(LAPLACE, purpose="p").draw(LAPLACE, purpose="one")
    lines = list(book.record().lines)
    lines.append(lines[-1])
    with pytest.raises(LedgerCorrupted, match="entry 3: the event was not granted, or was drawn more often"):
        verify_text(rebuilt(lines, 3, lambda body: body))


def test_a_second_opening_is_found():
    with pytest.raises(LedgerCorrupted, match="entry 1: a second opening"):
        verify_text(rebuilt([LINES[0], LINES[0].replace('"index":0', '"index":1')], 1, lambda body: body))


def test_a_dearer_price_than_needed_is_accepted():
    assert verify_text(rebuilt(LINES, 1, with_charge(epsilon=0.6))).grants == verify_text(LINES).grants


def test_files_that_are_no_ledger(tmp_path):
    with pytest.raises(LedgerError, match="cannot be read"):
        verify_ledger(tmp_path / "missing.jsonl")
    for data, match in (
        (b"", "entry 0: the ledger is empty"),
        (b"\n", "entry 0"),
        (b"\xff\n", "entry 0: not UTF-8"),
        (DATA[:-1], "entry 4: .*cut short"),
        (b'{"a":NaN}\n', "entry 0: NaN"),
        (b'{"a":1,"a":1}\n', "entry 0: a key twice"),
        (b"[" * 100_000 + b"\n", "entry 0"),
    ):
        with pytest.raises(LedgerCorrupted, match=match):
            verify_ledger(write(tmp_path, data))


def test_an_open_ledger_is_verified_as_far_as_it_goes():
    book = example()
    assert verify_ledger(book) == verify_ledger(book.record())
    book.grant(LAPLACE, purpose="later")
    assert verify_ledger(book, head=book.head).grants == 3


def test_the_verifier_shares_no_pricing_code():
    """Its modules import from accounting only the type of a record; how values are shown is no pricing."""
    import ast

    import ledgerwood.verification.ledgers.verifying as ledgers

    room = Path(ledgers.__file__).parent
    paths = sorted(room.rglob("*.py"))
    assert len(paths) > 15
    for path in paths:
        tree = ast.parse(path.read_text())
        imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        imported |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        ours = {name for name in imported if name and name.startswith("ledgerwood")}
        own = {name for name in ours if name.startswith("ledgerwood.verification")}
        shown = {name for name in ours if name.startswith("ledgerwood.pages")}
        assert ours - own - shown <= {"ledgerwood.accounting.ledger", "ledgerwood.errors"}
        assert "ledgerwood.verification.ledgers.verifying" not in own or path.name == "federations.py"
