"""Groups: exact probabilities, one group a row, one draw for all, and never a larger loss than the one paid for."""

import itertools
import math
import os
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledgerwood import (
    Adjacency,
    Budget,
    Composed,
    GaussianEvent,
    Ledger,
    Numeric,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    PrivacyUnit,
    PureEvent,
    Repeated,
    Schema,
    price,
)
from ledgerwood.accounting import Direction
from ledgerwood.accounting.events import FilteredEvent, GDPEvent
from ledgerwood.curator import (
    ColumnHistogram,
    ColumnMode,
    ColumnTable,
    Curator,
    LabelCount,
    LabelSum,
    RowCount,
    RowVault,
    StreamCurator,
    StreamRows,
    Table,
)
from ledgerwood.curator.rounds import group_ends
from ledgerwood.errors import (
    DrawRefused,
    InvalidParameter,
    PrivacyError,
    RoundViolation,
    UnsupportedEvent,
)
from ledgerwood.mechanisms import ExponentialMechanism, GaussianMechanism, LaplaceMechanism, SecureRandom, SeededRandom
from ledgerwood.mechanisms.exact.coins import RowCoins
from ledgerwood.verification import verify_ledger

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
WORDS = 1 << 64
SCHEMA = Schema.uniform(0.0, 1.0, n_features=2, target=Numeric("y", -1.0, 1.0))
QUIET = LaplaceMechanism(scales=(2.0**-8,))
COUNT = QUIET.event(LabelCount().sensitivity(A), A)
NOISE = GaussianMechanism(stddev=3.0)
SUM = NOISE.event(LabelSum().sensitivity(A), A)
GROUPS = Parallel((COUNT, Repeated(SUM, count=2), Composed((COUNT, SUM))), probabilities=(0.5, 0.25, 0.125))


def table_of(n_rows=50):
    return Table(schema=SCHEMA, cells=np.zeros((2, n_rows), np.uint8), targets=np.full(n_rows, 0.5))


def opened(event=GROUPS, *, table=None, source=None, adjacency=A):
    ledger = Ledger(Budget(epsilon=1e9, delta=0.5, adjacency=adjacency), unit=PrivacyUnit.ROW)
    grant = ledger.grant(event, purpose="test")
    return Curator(table or table_of(), grant, source or SeededRandom(1)), ledger


@pytest.fixture
def masks(monkeypatch):
    """The rows of each release, in its order."""
    seen, plain = [], Table.statistic

    def spied(self, query, sampled, budgets=None):
        seen.append(sampled.copy())
        return plain(self, query, sampled, budgets)

    monkeypatch.setattr(Table, "statistic", spied)
    return seen


class Scripted:
    """Patches the coins of rows, whose words are given; the noise's words are the source's own."""

    def __init__(self, monkeypatch, words):
        given = np.array(words, dtype=np.uint64)
        monkeypatch.setattr(RowCoins, "words", lambda coins, start, n: given[start : start + n])


def released(groups, number):
    return groups.round(number).release(LabelCount(), QUIET, purpose="count")


def rows_by_group(event, words, masks):
    """Which rows the curator puts into each group, for given words; all members are `COUNT`."""
    masks.clear()
    with pytest.MonkeyPatch.context() as patch:
        Scripted(patch, words)
        curator, _ = opened(event, table=table_of(len(words)))
        with curator.open_groups(event, purpose="groups") as groups:
            for number in range(len(groups)):
                released(groups, number)
    return np.array(masks)


def counting(*probabilities):
    return Parallel((COUNT,) * len(probabilities), probabilities=probabilities)


# --- the assignment


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60).filter(lambda p: math.fsum(p) > 0))
@example([0.1] * 10)
@example([2.0**-65, 1.0])
@example([5e-324, 2.0**-64])
@example([1.0 / 3.0] * 3)
@settings(max_examples=100, deadline=None)
def test_a_group_has_as_many_words_as_its_probability_holds_and_never_more(weights):
    total = math.fsum(weights)
    weights = [w / total for w in weights] if total > 1.0 else weights
    event = Parallel((COUNT,) * len(weights), probabilities=tuple(weights))
    ends = (0, *group_ends(event))
    assert all(type(end) is int for end in ends)
    floors = [math.floor(Fraction(p) * WORDS) for p in event.probabilities]
    for number, (p, floor) in enumerate(zip(event.probabilities, floors, strict=True)):
        words = ends[number + 1] - ends[number]
        assert words == min(floor, WORDS - ends[number])
        assert 0 <= words <= Fraction(p) * WORDS
    assert ends[-1] == min(sum(floors), WORDS)


def test_probabilities_that_add_up_to_more_than_one_take_from_the_last_groups():
    weights = (0.5, 0.5, 1e-10)
    assert group_ends(Parallel((COUNT,) * 3, probabilities=weights)) == (WORDS // 2, WORDS, WORDS)
    weights = (0.5, 0.5 + 1e-10, 1e-10)
    assert group_ends(Parallel((COUNT,) * 3, probabilities=weights)) == (WORDS // 2, WORDS, WORDS)
    above = tuple(0.1 * 0.9**k / (1 - 0.9**50) for k in range(50))
    assert sum(map(Fraction, above)) > 1
    assert group_ends(Parallel((COUNT,) * 50, probabilities=above))[-1] == WORDS


def test_the_first_and_the_last_word_of_each_group_lead_to_it(masks):
    event = counting(0.1, 0.0, 0.25, 1e-19, 0.3)
    ends = (0, *group_ends(event))
    assert ends[1] == math.floor(Fraction(0.1) * WORDS)
    firsts, lasts = [ends[k] for k in (0, 2, 3, 4)], [ends[k + 1] - 1 for k in (0, 2, 3, 4)]
    assert firsts[2] == lasts[2]  # 1e-19 is a single word
    words = [*firsts, *lasts, ends[-1], WORDS - 1]
    found = rows_by_group(event, words, masks)
    expected = np.zeros((5, 10), dtype=bool)
    for place, group in enumerate((0, 2, 3, 4, 0, 2, 3, 4)):
        expected[group, place] = True
    np.testing.assert_array_equal(found, expected)  # the last two rows are in no group


@given(st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=12), st.integers(0, WORDS - 1))
@settings(max_examples=15, deadline=None)
def test_with_the_same_words_a_row_more_changes_one_group_by_itself(words, word):
    event, seen, plain = counting(0.3, 0.2, 0.4), [], Table.statistic
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "statistic", lambda self, q, m, b=None: seen.append(m.copy()) or plain(self, q, m, b))
        without = rows_by_group(event, words, seen)
        within = rows_by_group(event, [*words, word], seen)
    np.testing.assert_array_equal(within[:, :-1], without)
    assert without.sum(axis=0).max() <= 1
    assert within[:, -1].sum() == (word < group_ends(event)[-1])


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_every_row_is_in_exactly_one_group_where_the_probabilities_are_one(masks):
    event = counting(0.5, 0.25, 0.125, 0.125)
    table = table_of(200_000)
    curator, _ = opened(event, table=table, source=SecureRandom())
    with curator.open_groups(event, purpose="groups") as groups:
        sizes = [released(groups, number).real[0] for number in range(4)]
    np.testing.assert_array_equal(np.sum(masks, axis=0), 1)
    np.testing.assert_allclose(sizes, np.sum(masks, axis=1), atol=1.0)
    expected = 200_000 * np.array(event.probabilities)
    # Six standard deviations of a binomial law.
    assert np.all(np.abs(np.sum(masks, axis=1) - expected) < 6 * np.sqrt(expected))


def test_each_draw_assigns_afresh(masks):
    event = counting(0.5)
    curator, _ = opened(Repeated(event, count=2), table=table_of(1000), source=SecureRandom())
    for _ in range(2):
        with curator.open_groups(event, purpose="groups") as groups:
            released(groups, 0)
    first, second = masks
    both = np.count_nonzero(first & second)
    assert abs(both - 250) < 8 * math.sqrt(1000 * 3 / 16)


def test_a_group_that_nobody_can_enter_still_adds_its_noise():
    event = counting(1.0, 0.0)
    curator, _ = opened(event)
    with curator.open_groups(event, purpose="groups") as groups:
        empty = released(groups, 1)
    assert 0.0 < abs(empty.real[0]) < 1.0


def test_a_table_without_rows_has_groups_without_rows():
    curator, _ = opened(table=table_of(0))
    with curator.open_groups(GROUPS, purpose="groups") as groups:
        assert abs(released(groups, 0).real[0]) < 1.0


# --- the budget


def test_one_draw_pays_for_all_groups_and_the_ledger_has_the_plans_price(tmp_path):
    curator, ledger = opened(Repeated(GROUPS, count=2))
    assert ledger.spent().epsilon <= price(Repeated(GROUPS, count=2)).epsilon(ledger.spent().delta)
    before = len(ledger.entries)
    with curator.open_groups(GROUPS, purpose="an ensemble") as groups:
        assert len(ledger.entries) == before + 1
        assert len(groups) == 3
        receipts = [released(groups, 0).receipt, released(groups, 2).receipt]
    assert len(ledger.entries) == before + 1
    assert {receipt.hash for receipt in receipts} == {ledger.head}
    assert receipts[0].event == GROUPS
    ledger.save(tmp_path / "run.ledger.jsonl")
    assert verify_ledger(tmp_path / "run.ledger.jsonl").draws == 1


def test_a_group_releases_its_own_event_and_no_more():
    curator, _ = opened()
    with curator.open_groups(GROUPS, purpose="groups") as groups:
        first, second, third = (groups.round(number) for number in range(3))
        with pytest.raises(RoundViolation, match="does not hold; it holds .*LaplaceEvent"):
            first.release(LabelSum(), NOISE, purpose="another group's")
        first.release(LabelCount(), QUIET, purpose="count")
        with pytest.raises(RoundViolation, match="nothing more"):
            first.release(LabelCount(), QUIET, purpose="again")
        second.release(LabelSum(), NOISE, purpose="sum")
        third.release(LabelSum(), NOISE, purpose="sum")  # interleaved, in any order
        second.release(LabelSum(), NOISE, purpose="sum")
        third.release(LabelCount(), QUIET, purpose="count")
        for number in range(3):
            with pytest.raises(RoundViolation, match="nothing more"):
                groups.round(number).release(LabelCount(), QUIET, purpose="again")


def test_asking_again_gives_the_same_round_with_what_is_left():
    curator, _ = opened()
    with curator.open_groups(GROUPS, purpose="groups") as groups:
        round_ = groups.round(1)
        round_.release(LabelSum(), NOISE, purpose="one of two")
        assert groups.round(1) is round_
        assert groups.round(np.int64(1)) is round_
        groups.round(1).release(LabelSum(), NOISE, purpose="two of two")
        with pytest.raises(RoundViolation, match="nothing more"):
            groups.round(1).release(LabelSum(), NOISE, purpose="three of two")


def test_equal_groups_have_a_purse_each():
    event = counting(0.5, 0.5)
    curator, _ = opened(event)
    with curator.open_groups(event, purpose="groups") as groups:
        for number in (1, 0):
            released(groups, number)
            with pytest.raises(RoundViolation, match="nothing more"):
                released(groups, number)


def test_a_closed_round_stays_closed_and_the_others_open():
    curator, _ = opened()
    with curator.open_groups(GROUPS, purpose="groups") as groups:
        with groups.round(0) as round_:
            pass
        assert groups.round(0) is round_
        with pytest.raises(RoundViolation, match="the round is closed"):
            released(groups, 0)
        released(groups, 2)


def test_closed_groups_close_every_round():
    curator, _ = opened()
    with curator.open_groups(GROUPS, purpose="groups") as groups:
        kept = groups.round(0)
    with pytest.raises(RoundViolation, match="the round is closed"):
        kept.release(LabelCount(), QUIET, purpose="late")
    for number in (0, 1):
        with pytest.raises(RoundViolation, match=f"group {number}: the groups are closed"):
            groups.round(number)


def test_two_draws_may_be_open_together():
    curator, ledger = opened(Repeated(GROUPS, count=2))
    with (
        curator.open_groups(GROUPS, purpose="one") as one,
        curator.open_groups(GROUPS, purpose="two") as two,
    ):
        assert released(one, 0).receipt.index + 1 == released(two, 0).receipt.index
    with pytest.raises(DrawRefused, match="left"):
        curator.open_groups(GROUPS, purpose="three")


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (3, r"group=3 must be in 0\.\.2 \(unit: group's place\)"),
        (-1, "group=-1 must be a whole number >= 0"),
        (1.0, "group=1.0 must be a whole number"),
        (True, "group=True must be a whole number"),
        (None, "group=None must be a whole number"),
    ],
)
def test_a_group_that_is_not_there_is_named_with_the_bound(group, words):
    curator, _ = opened()
    with curator.open_groups(GROUPS, purpose="groups") as groups, pytest.raises(InvalidParameter, match=words):
        groups.round(group)


SAMPLE = PoissonSampled(COUNT, sampling_rate=0.5)
FILTERED = FilteredEvent(GaussianEvent(noise_multiplier=10.0, adjacency=A), limit=GDPEvent(mu=1.0, adjacency=A))


@pytest.mark.slow_after(2)  # many tables and their neighbours in exact integers
@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Parallel.worst((COUNT, SUM)), "no probabilities for drawing groups"),
        (Parallel((COUNT, SAMPLE), probabilities=(0.5, 0.5)), "one sample per draw"),
        (Parallel((Composed((COUNT, SAMPLE)),), probabilities=(1.0,)), "one sample per draw"),
        (Parallel((Parallel((COUNT,), probabilities=(0.5,)), COUNT), probabilities=(0.5, 0.5)), "open_groups"),
        (Parallel((Repeated(Parallel.worst((COUNT,)), count=2),), probabilities=(0.5,)), "one sample per draw"),
        (Parallel((COUNT, FILTERED), probabilities=(0.5, 0.5)), "one sample per draw"),
        (COUNT, "not of LaplaceEvent"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_and_nothing_is_drawn(event, words, monkeypatch):
    curator, ledger = opened(event)
    before = ledger.head
    monkeypatch.setattr(Table, "assign", None)
    with pytest.raises(UnsupportedEvent, match=words):
        curator.open_groups(event, purpose="groups")
    assert ledger.head == before


def test_groups_that_the_grant_does_not_hold_are_refused_before_a_row_is_assigned(monkeypatch):
    curator, ledger = opened(COUNT)
    before = ledger.head
    monkeypatch.setattr(Table, "assign", None)
    with pytest.raises(DrawRefused):
        curator.open_groups(GROUPS, purpose="groups")
    assert ledger.head == before


def test_an_impostor_of_a_member_is_refused_before_a_row_is_assigned(monkeypatch):
    class Impostor(type(COUNT)):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return hash(COUNT)

    false = Parallel((Impostor(noise_multiplier=1e-9, adjacency=A),), probabilities=(0.5,))
    curator, ledger = opened(Parallel((COUNT,), probabilities=(0.5,)))
    before = ledger.head
    monkeypatch.setattr(Table, "assign", None)
    with pytest.raises(PrivacyError):
        curator.open_groups(false, purpose="groups")
    assert ledger.head == before


def test_groups_are_not_opened_as_a_round():
    curator, ledger = opened()
    before = ledger.head
    with pytest.raises(UnsupportedEvent, match="groups are opened by open_groups"):
        curator.open(GROUPS, purpose="groups")
    assert ledger.head == before


def test_a_stream_draws_no_groups():
    rows = StreamRows.from_data([[0.5, 0.5]], [0.0], ["a"], SCHEMA, loss="squared", bins=8, vault=RowVault())
    ledger = Ledger(Budget(epsilon=1e9, delta=0.5, adjacency=A), unit=PrivacyUnit.ROW)
    grant = ledger.grant(GROUPS, purpose="test")
    before = ledger.head
    with pytest.raises(UnsupportedEvent, match="a stream draws no groups"):
        StreamCurator(rows, grant, SeededRandom(1)).open_groups(GROUPS, purpose="groups")
    assert ledger.head == before


# --- threads, processes, runs, other tables


def test_two_threads_share_one_purse():
    curator, _ = opened()
    outcomes = []
    with curator.open_groups(GROUPS, purpose="groups") as groups:

        def release():
            try:
                released(groups, 0)
                outcomes.append("released")
            except RoundViolation:
                outcomes.append("refused")

        threads = [threading.Thread(target=release) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(outcomes) == ["refused"] * 7 + ["released"]


def test_a_forked_child_opens_and_releases_nothing(fork):
    curator, _ = opened()
    with curator.open_groups(GROUPS, purpose="groups") as groups:
        made = groups.round(0)

        def child():
            refused = 0
            for attempt in (
                lambda: groups.round(1),
                lambda: groups.round(0),
                lambda: made.release(LabelCount(), QUIET, purpose="a child's"),
            ):
                try:
                    attempt()
                except RoundViolation as error:
                    refused += "another process" in str(error)
            return refused

        _, status = os.waitpid(fork(child), 0)
        assert os.waitstatus_to_exitcode(status) == 3
        released(groups, 0)


def test_a_run_of_a_selection_has_groups_that_end_with_it():
    run_event = Parallel((COUNT, COUNT), probabilities=(0.5, 0.5))
    selection = PoissonSelection(run_event, mean=2.0)
    curator, ledger = opened(selection, source=SeededRandom(5))
    kept = []

    def run(index, rows, source):
        groups = rows.open_groups(run_event, purpose="groups")
        kept.append((groups, groups.round(1)))
        return float(released(groups, 0).real[0]), None

    before = len(ledger.entries)
    assert curator.select(selection, [run_event], run, purpose="search") is not None
    assert len(ledger.entries) == before + 1
    for groups, round_ in kept:
        with pytest.raises(RoundViolation, match="closed"):
            groups.round(0)
        with pytest.raises(RoundViolation, match="closed"):
            round_.release(LabelCount(), QUIET, purpose="late")


def test_a_group_of_a_table_of_columns_counts_and_chooses():
    column = Numeric("a", 0.0, 4.0)
    table = ColumnTable.from_data([[1.0], [2.0], [3.0]], Schema(features=(column,), target=Numeric("y", 0.0, 1.0)))
    count = QUIET.event(RowCount().sensitivity(A), A)
    query = ColumnMode(histogram=ColumnHistogram(column=column, edges=(0.0, 2.5, 4.0)))
    choice = ExponentialMechanism(rate=50.0)
    event = Parallel((Composed((count, query.event(choice, A))),), probabilities=(1.0,))
    curator, _ = opened(event, table=table)
    with curator.open_groups(event, purpose="groups") as groups, groups.round(0) as round_:
        assert abs(round_.release(RowCount(), QUIET, purpose="count").real[0] - 3.0) < 1.0
        assert round_.select(query, choice, purpose="mode").value == 0


# --- the loss, by enumeration


def joint_law(event, n_rows, masks, answer):
    """The exact law of a transcript over `n_rows` equal rows: the curator's groups for each kind of words, times the
    probabilities of the answers, which `answer` gives for the sizes of all groups."""
    ends = (0, *group_ends(event), WORDS)
    kinds = [(ends[k], Fraction(ends[k + 1] - ends[k], WORDS)) for k in range(len(ends) - 1) if ends[k + 1] > ends[k]]
    law = {}
    for chosen in itertools.product(kinds, repeat=n_rows):
        sizes = rows_by_group(event, [word for word, _ in chosen], masks).sum(axis=1) if n_rows else [0] * 2
        weight = math.prod((mass for _, mass in chosen), start=Fraction(1))
        for transcript, probability in answer(sizes):
            law[transcript] = law.get(transcript, 0) + weight * probability
    assert sum(law.values()) == 1
    return law


def divergence(first, second, x):
    return sum(max(first.get(o, 0) - x * second.get(o, 0), Fraction(0)) for o in {*first, *second})


ODDS = (Fraction(3), Fraction(2))  # e^epsilon of a randomised response in group 0 and 1


def response(size, odds, sharp):
    """Answers whether at least `sharp` rows are there, truthfully with odds to 1."""
    truth = int(size >= sharp)
    return [(truth, odds / (1 + odds)), (1 - truth, 1 / (1 + odds))]


def adaptive(sizes):
    """Group 0 is asked; its answer chooses what group 1 is asked; both choose what group 0 is asked once more."""
    for one, p in response(sizes[0], ODDS[0], 1):
        for two, q in response(sizes[1], ODDS[1], 1 + one):
            for three, r in response(sizes[0], ODDS[1], 1 + two):
                yield (one, two, three), p * q * r


@pytest.mark.slow_after(1)  # many tables and their neighbours in exact integers
@pytest.mark.parametrize("weights", [(0.5, 0.25), (0.75, 0.25), (0.125, 0.5)])
def test_the_joint_loss_of_adaptive_rounds_is_within_the_price(weights, masks):
    pures = [PureEvent(epsilon=math.nextafter(math.log(odds), 10.0), adjacency=A) for odds in ODDS]
    priced = price(Parallel((Composed((pures[0], pures[1])), pures[1]), probabilities=weights), method="pld")
    event = counting(*weights)
    laws = [joint_law(event, n_rows, masks, adaptive) for n_rows in range(4)]
    for without, within in itertools.pairwise(laws):
        for x in (1, Fraction(5, 4), Fraction(3, 2), 2, Fraction(5, 2), 3, 4, 5):
            worst = max(divergence(within, without, x), divergence(without, within, x))
            assert float(worst) <= priced.delta(math.log(x) * (1 - 1e-15)) * (1 + 1e-12)
    # The price is not idle: it is not above what one empty neighbour loses by more than the secrecy of the group.
    assert divergence(laws[1], laws[0], 1) > Fraction(1, 3) * Fraction(priced.delta(0.0))


@pytest.mark.parametrize("weights", [(0.5, 0.25), (0.3, 0.7), (0.1, 0.2)])
def test_with_the_group_published_the_loss_is_that_of_the_event_to_the_last_word(weights, masks):
    """The pair of the proof, attained: one row, its group known, each group one randomised response."""
    event = counting(*weights)
    pures = tuple(PureEvent(epsilon=math.log(odds), adjacency=A) for odds in ODDS)
    stated = Parallel(pures, probabilities=weights)

    def with_group(group, sizes):
        for one, p in response(sizes[0], ODDS[0], 1):
            for two, q in response(sizes[1], ODDS[1], 1):
                yield (group, one, two), p * q

    ends = (0, *group_ends(event), WORDS)
    within, without = {}, {}
    for group in range(3):
        mass = Fraction(ends[group + 1] - ends[group], WORDS)
        if mass:
            sizes = rows_by_group(event, [ends[group]], masks).sum(axis=1)
            within |= {o: mass * p for o, p in with_group(group, sizes)}
            without |= {o: mass * p for o, p in with_group(group, (0, 0))}
    for x in (Fraction(1), Fraction(5, 4), Fraction(7, 4), Fraction(5, 2)):
        exact = sum(
            Fraction(p) * max(odds - x, Fraction(0)) / (1 + odds) for p, odds in zip(weights, ODDS, strict=True)
        )
        for pair in ((within, without), (without, within)):
            found = divergence(*pair, x)
            assert exact - Fraction(4, WORDS) <= found <= exact
        logs = stated.log_profile([math.log(x)], direction=Direction.REMOVE)
        assert float(exact) <= math.exp(logs[0]) * (1 + 1e-12)


def test_a_replaced_row_keeps_its_place_and_its_group(masks):
    mechanism = LaplaceMechanism(scales=(4.0,))
    inner = mechanism.event(LabelSum().sensitivity(R), R)
    event = Parallel((inner, inner), probabilities=(0.5, 0.25))
    labels, found = (np.array([0.5, 0.5, 0.5]), np.array([0.5, -0.25, 0.5])), []
    words = [0, WORDS // 2, WORDS - 1]
    for targets in labels:
        with pytest.MonkeyPatch.context() as patch:
            Scripted(patch, words)
            table = Table(schema=SCHEMA, cells=np.zeros((2, 3), np.uint8), targets=targets)
            curator, _ = opened(event, table=table, adjacency=R)
            with curator.open_groups(event, purpose="groups") as groups:
                values = [groups.round(k).release(LabelSum(), mechanism, purpose="sum") for k in range(2)]
        found.append([value.real[0] for value in values])
    # The same words of noise, so that the difference is the statistic's: group 1 alone, by the row's change.
    np.testing.assert_array_equal(np.subtract(*found), [0.0, 0.75])
    np.testing.assert_array_equal(masks[0], masks[2])
    np.testing.assert_array_equal(masks[1], masks[3])
