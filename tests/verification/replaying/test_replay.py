"""Record and replay: what it records, and that it names each way in which a fit can be unsound."""

import math
import re
from collections import Counter

import numpy as np
import pytest

import ledgerwood as lw
import ledgerwood.curator.curator as curators
from ledgerwood import Adjacency, Budget, Ledger, Numeric, Parallel, PoissonSampled, PrivacyUnit
from ledgerwood.accounting.ledger import Grant
from ledgerwood.curator import (
    ColumnBounds,
    ColumnTable,
    Curator,
    LeafMoments,
    RowCount,
    SplitGains,
    Table,
    gain_range,
)
from ledgerwood.curator.allocated import AllocatedRounds
from ledgerwood.curator.inputs.encoding import encode_features
from ledgerwood.curator.rounds import CuratorGroups, CuratorRound
from ledgerwood.curator.tables.columns import AbstractRows
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, PrivacyError, ReplayFailed, RoundViolation
from ledgerwood.mechanisms import (
    BoxShifts,
    DiscreteGaussianMechanism,
    EllipticalGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PermuteAndFlipMechanism,
    PrivateBoundsMechanism,
    SecureRandom,
    SeededRandom,
    UtilityRange,
)
from ledgerwood.mechanisms.exact.allocations import RowAllocation
from ledgerwood.recording.points import with_body
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification import Neighbour, Replay, added, duplicated, permuted, removed, replaced, replay

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
SCHEMA = lw.Schema(features=(Numeric("a", 0, 1), Numeric("b", 0, 1)), target=Numeric("y", -1, 1))
TESTS = SplitTests.every(SCHEMA.cells(8))
GENERATOR = np.random.default_rng(4)
X = GENERATOR.uniform(0, 1, (40, 2))
Y = np.round(X[:, 0] - 0.5 * X[:, 1], 3)
DATA = (X, Y)
FAR = added(DATA, [0.05, 0.95], 1.0)
LESS = removed(DATA, 7)
START = Ensemble(initial_score=0.0)
STATISTIC = Table.statistic
NOISE = EllipticalGaussianMechanism(stddevs=(4.0, 4.0))


def one_split(feature, cell):
    return TreeStructure(
        feature=np.array([feature], np.int32), split=np.array([cell], np.uint16), equals=np.array([False])
    )


def query(structure, ensemble=START, clip=0.5):
    return LeafMoments(loss="squared", clip=clip).of(structure, ensemble)


def event_of(clip=0.5, noise=NOISE, adjacency=A):
    return noise.event(query(one_split(0, 4), clip=clip).sensitivity(adjacency), adjacency)


def granted(plan, adjacency=A):
    ledger = Ledger(Budget(epsilon=1e6, delta=1e-3, adjacency=adjacency), unit=PrivacyUnit.ROW)
    return ledger, ledger.grant(plan, purpose="fit")


def grown(
    data, *, rounds=3, clip=0.5, structures=None, stop=None, words=1, noise=NOISE, rate=1.0, adjacency=A, secure=False
):
    """A small and sound trainer; each argument is a door for a fault."""
    X, y = data
    table = Table.from_data(X, y, SCHEMA, loss="squared", bins=8)
    event = event_of(clip, noise, adjacency)
    event = event if rate == 1.0 else PoissonSampled(event, sampling_rate=rate)
    ledger, grant = granted(lw.Repeated(event, count=rounds), adjacency)
    source = SecureRandom() if secure else SeededRandom(7)
    curator, ensemble = Curator(table, grant, source), START
    for t in range(rounds):
        drawn = int(source.uint64(words)[0])
        structure = one_split(0, 1 + drawn % 7) if structures is None else structures(t)
        with curator.open(event, purpose=f"tree {t + 1}") as round_:
            release = round_.release(query(structure, ensemble, clip), noise, purpose=f"leaves of tree {t + 1}")
        values = 0.1 * np.tanh(release.real[:, 1])
        ensemble = ensemble.extended(Tree(structure=structure, values=values))
        if stop is not None and stop(t):
            break
    return ensemble, ledger


# ------------------------------------------------------------------------------------------------------- sound fits


@pytest.mark.parametrize("secure", [False, True], ids=["test", "secure"])
@pytest.mark.parametrize("neighbour", [FAR, LESS, duplicated(DATA, 3)], ids=["added", "removed", "duplicated"])
def test_a_sound_fit_shows_nothing_and_its_calls_in_order(neighbour, secure):
    found = replay(lambda data: grown(data, secure=secure), DATA, neighbour)
    assert found.ok, found
    assert [call.kind for call in found.calls] == ["grant"] + ["words", "open", "draw", "sample", "release"] * 3
    assert [call.number for call in found.calls] == list(range(1, 17))
    assert [call.purpose for call in found.calls if call.kind == "release"] == [
        f"leaves of tree {t}" for t in (1, 2, 3)
    ]
    release = found.calls[5].fields
    assert release["event"] == event_of() == release["draw"]
    assert release["sensitivity"] == BoxShifts(boxes=((1.0, 0.5),))
    assert found.calls[4].share is None
    assert str(found) == f"16 calls, nothing found; largest share {found.largest_share:.3g}"


@pytest.mark.parametrize("neighbour", [FAR, LESS, permuted(DATA, GENERATOR)], ids=["added", "removed", "permuted"])
def test_a_plain_data_set_is_a_neighbour_by_its_rows(neighbour):
    plain, told = replay(grown, DATA, neighbour.data), replay(grown, DATA, neighbour)
    assert isinstance(plain, Replay)
    assert plain.ok, plain
    assert [call.share for call in plain.calls] == [call.share for call in told.calls]
    with pytest.raises(InvalidParameter, match="has 40 rows that the data do not have, and lacks 40 of theirs"):
        replay(grown, DATA, (X + 1.0, Y))


def test_a_row_that_moves_as_much_as_it_may_has_share_one():
    """By hand: count 1 and clipped gradient .5, in units of the noise, against the box (1, .5)."""
    far = added(DATA, [0.05, 0.95], 1.0)
    shares = [call.share for call in replay(grown, DATA, far).calls if call.kind == "release"]
    assert shares == pytest.approx([1.0] * 3, abs=1e-12)
    middle = added(DATA, [0.05, 0.95], -0.25)
    first = next(call.share for call in replay(grown, DATA, middle).calls if call.kind == "release")
    assert first == pytest.approx(math.sqrt(1.0 + 0.25**2) / math.sqrt(1.0 + 0.5**2), abs=1e-6)


def test_the_order_of_rows_moves_nothing():
    found = replay(grown, DATA, permuted(DATA, GENERATOR))
    assert found.ok, found
    assert found.largest_share == 0.0


@pytest.mark.slow_after(1)  # many replays and searches
@pytest.mark.parametrize("neighbour", [FAR, LESS], ids=["added", "removed"])
def test_samples_are_coupled_and_a_row_outside_of_them_moves_nothing(neighbour):
    def sampled(data):
        return grown(data, rate=0.4, rounds=4)

    inside, outside = replay(sampled, DATA, neighbour), replay(sampled, DATA, neighbour, sampled=False)
    assert inside.ok, inside
    assert outside.ok, outside
    assert [call.share > 0 for call in inside.calls if call.kind == "release"] == [True] * 4
    assert outside.largest_share == 0.0


@pytest.mark.parametrize("noise", [NOISE, LaplaceMechanism(scales=(3.0, 3.0))], ids=["gaussian", "laplace"])
def test_a_replaced_row_moves_two_leaves_or_one_and_no_more(noise):
    def fit(data):
        return grown(data, adjacency=R, noise=noise, structures=lambda t: one_split(0, 4))

    # From one leaf to the other, with labels on opposite ends; then inside of a leaf.
    low = int(np.argmin(X[:, 0]))
    data = (X, np.where(np.arange(40) == low, -1.0, Y))
    inside = 1 / 3 if isinstance(noise, LaplaceMechanism) else math.sqrt(1.0 / 2.5)
    for row, share in (([0.99, 0.5], 1.0), ([0.0, 0.5], inside)):
        found = replay(fit, data, replaced(data, low, row, 1.0))
        assert found.ok, found
        assert next(call.share for call in found.calls if call.kind == "release") == pytest.approx(share, rel=1e-9)


def grouped(data, *, order=(0, 1, 2), noise=NOISE, times=1):
    """Three groups with a quarter of the rows each, two releases a group, interleaved."""
    event = Parallel((lw.Repeated(event_of(noise=noise), count=2),) * 3, probabilities=(0.25, 0.25, 0.25))
    ledger, grant = granted(lw.Repeated(event, count=times))
    curator = Curator(Table.from_data(*data, SCHEMA, loss="squared", bins=8), grant, SeededRandom(7))
    released = []
    for _ in range(times):
        with curator.open_groups(event, purpose="groups") as groups:
            for turn in (1, 2):
                for k in order:
                    release = groups.round(k).release(query(one_split(1, 3)), noise, purpose=f"group {k}, turn {turn}")
                    released.append(release.real)
    return released, ledger


@pytest.mark.parametrize("neighbour", [FAR, LESS], ids=["added", "removed"])
def test_the_changed_row_moves_its_own_group_only(neighbour):
    for group in range(3):
        found = replay(grouped, DATA, neighbour, group=group)
        assert found.ok, found
        assert "open_groups" in {call.kind for call in found.calls}
        moving = {call.purpose[:7] for call in found.calls if call.share}
        assert moving == {f"group {group}"}
    assert replay(grouped, DATA, neighbour, sampled=False).largest_share == 0.0


def allocated(data, *, selected=2, steps=4, times=1, repeat=1):
    """Trees whose rows are allocated to them; `repeat` releases a step."""
    event = lw.RandomAllocation(lw.Repeated(event_of(), count=repeat), selected=selected, steps=steps)
    ledger, grant = granted(lw.Repeated(event, count=times))
    curator = Curator(Table.from_data(*data, SCHEMA, loss="squared", bins=8), grant, SeededRandom(7))
    released = []
    for number in range(times):
        with curator.open_allocation(event, purpose=f"trees {number}") as trees:
            for tree in range(steps):
                with trees.step() as round_:
                    for turn in range(repeat):
                        purpose = f"tree {tree}, turn {turn}"
                        release = round_.release(query(one_split(1, 3 + turn)), NOISE, purpose=purpose)
                        released.append(release.real)
    return released, ledger


@pytest.mark.parametrize("neighbour", [FAR, LESS], ids=["added", "removed"])
def test_the_changed_row_moves_steps_of_an_allocation_where_it_is_in_them(neighbour):
    inside = replay(lambda data: allocated(data, times=2), DATA, neighbour)
    outside = replay(allocated, DATA, neighbour, sampled=False)
    assert inside.ok, inside
    assert outside.ok, outside
    assert [call.share > 0 for call in inside.calls if call.kind == "release"] == [True] * 8
    assert {"open_allocation", "allocate", "step", "allocated"} <= {call.kind for call in inside.calls}
    assert outside.largest_share == 0.0


def cells_of(data):
    return encode_features(data[0], SCHEMA, bins=8)


def test_equal_releases_of_one_draw_are_counted():
    """A composition names equal members one by one."""
    event = lw.Composed((event_of(), event_of()))

    def fit(data):
        _, grant = granted(event)
        curator = Curator(Table.from_data(*data, SCHEMA, loss="squared", bins=8), grant, SeededRandom(7))
        with curator.open(event, purpose="both") as round_:
            return [round_.release(query(one_split(0, k)), NOISE, purpose=f"release {k}").real for k in (2, 5)]

    found = replay(fit, DATA, FAR)
    assert found.ok, found


def chosen(data, *, mechanism=None, adjacency=A, depth=3, tests=TESTS, start=START, smallest=0):
    """A tree by private gains; each argument is a door for a fault."""
    mechanism = mechanism or ExponentialMechanism(rate=0.3)
    range_ = gain_range(0.5, adjacency)
    event = mechanism.event(range_, adjacency)
    ledger, grant = granted(lw.Repeated(event, count=depth), adjacency)
    curator = Curator(Table.from_data(*data, SCHEMA, loss="squared", bins=8), grant, SeededRandom(7))
    structure = TreeStructure.root()
    for level in range(depth):
        gains = SplitGains(structure=structure, tests=tests, ensemble=start, loss="squared", clip=0.5, damping=0.0)
        with curator.open(event, purpose=f"level {level}") as round_:
            structure = structure.deeper(round_.select(gains, mechanism, purpose=f"splits of level {level}").value)
            if smallest and np.bincount(structure.route(cells_of(data)), minlength=structure.n_leaves).min() < smallest:
                break
    return structure, ledger


@pytest.mark.parametrize("mechanism", [ExponentialMechanism(rate=0.3), PermuteAndFlipMechanism(rate=0.3)])
def test_choices_of_a_level_are_held_to_their_range(mechanism):
    def fit(data):
        return chosen(data, mechanism=mechanism)

    for neighbour in (FAR, LESS, duplicated(DATA, 0)):
        found = replay(fit, DATA, neighbour)
        assert found.ok, found
        assert 0.0 < found.largest_share <= 1.0
    assert replay(fit, DATA, permuted(DATA, GENERATOR)).largest_share == 0.0


def test_choices_under_replace_one():
    found = replay(lambda data: chosen(data, adjacency=R), DATA, replaced(DATA, 5, [0.9, 0.1], -1.0))
    assert found.ok, found
    assert found.largest_share > 0.0


# ----------------------------------------------------------------------------------------------------- unsound fits


def broken(monkeypatch, owner, name, change):
    """A fault in the library's own code, behind the point that its calls pass."""
    monkeypatch.setattr(owner, name, with_body(getattr(owner, name), change))


def halved(monkeypatch):
    monkeypatch.setattr(LeafMoments, "sensitivity", lambda self, adjacency: BoxShifts(boxes=((0.5, self.clip / 2),)))


def faults(found):
    """Where, as one text."""
    assert not found.ok
    return "\n".join(map(str, found.violations))


def test_a_sensitivity_of_one_half_is_found_in_the_statistic(monkeypatch):
    halved(monkeypatch)
    text = faults(replay(grown, DATA, FAR))
    assert "release 'leaves of tree 1': stated in a box of ((0.5, 0.25),)" in text
    assert "2 times what it pays for: a shift of (1, -0.5)" in text


def test_noise_that_was_not_paid_for_is_found(monkeypatch):
    monkeypatch.setattr(
        LaplaceMechanism, "event", lambda self, s, a: lw.LaplaceEvent(noise_multiplier=9.0, adjacency=a)
    )
    noise = LaplaceMechanism(scales=(3.0, 3.0))
    text = faults(replay(lambda data: grown(data, noise=noise), DATA, FAR))
    assert "stated LaplaceEvent(noise_multiplier=9.0" in text
    assert "4.5 times what it pays for" in text


@pytest.mark.parametrize(
    ("noise", "priced"),
    [
        (NOISE, EllipticalGaussianMechanism(stddevs=(8.0, 8.0))),
        (LaplaceMechanism(scales=(3.0, 3.0)), LaplaceMechanism(scales=(6.0, 6.0))),
        (GaussianMechanism(stddev=4.0), GaussianMechanism(stddev=8.0)),
    ],
)
def test_half_of_the_noise_that_was_priced_is_found(noise, priced, monkeypatch):
    """The event is that of twice the noise: no check of the curator's or the ledger's can know."""
    plain = type(noise).event
    monkeypatch.setattr(type(noise), "event", lambda self, shifts, adjacency: plain(priced, shifts, adjacency))
    text = faults(replay(lambda data: grown(data, noise=noise), DATA, FAR))
    assert "release 'leaves of tree 1': stated" in text
    assert "times what it pays for: a shift of (1, -0.5)" in text
    found = re.search(r"found ([\d.]+) times what it pays for", text)
    # Of the Gaussian multiplier all of the factor shows but what its rounding takes.
    assert float(found[1]) == pytest.approx(2.0, rel=1e-6)


def test_a_trainer_that_pays_for_more_noise_than_it_asks_for_is_found(monkeypatch):
    """The curator refuses; if its check is broken, the replay's own account of the draw is not."""
    half = EllipticalGaussianMechanism(stddevs=(2.0, 2.0))

    def fit(data):
        _, grant = granted(event_of())
        curator = Curator(Table.from_data(*data, SCHEMA, loss="squared", bins=8), grant, SeededRandom(7))
        with curator.open(event_of(), purpose="once") as round_:
            return round_.release(query(one_split(0, 4)), half, purpose="leaves").real

    with pytest.raises(RoundViolation, match="which this draw does not hold"):
        replay(fit, DATA, FAR)
    monkeypatch.setattr(CuratorRound, "_take", lambda self, event, purpose: None)
    text = faults(replay(fit, DATA, FAR))
    assert f"release 'leaves': stated 0 x {event_of(noise=half)!r} left of the draw; found 1 x" in text


def test_a_clip_that_is_twice_the_stated_one_is_found(monkeypatch):
    def doubled(self, asked, sampled, budgets=None):
        return STATISTIC(self, query(asked.structure, asked.ensemble, 2.0 * asked.statistic.clip), sampled, budgets)

    monkeypatch.setattr(Table, "statistic", doubled)
    text = faults(replay(grown, DATA, FAR))
    assert (
        "release 'leaves of tree 1': stated in a box of ((1.0, 0.5),) (L1, by column); found a shift of (1, -1)" in text
    )


def test_a_gain_with_half_its_range_is_found(monkeypatch):
    half = UtilityRange(range=gain_range(0.5, A).range / 8)
    monkeypatch.setattr(SplitGains, "sensitivity", lambda self, adjacency: half)

    def fit(data):
        mechanism = ExponentialMechanism(rate=0.3)
        event = mechanism.event(half, A)
        _, grant = granted(event)
        curator = Curator(Table.from_data(*data, SCHEMA, loss="squared", bins=8), grant, SeededRandom(7))
        gains = SplitGains(
            structure=TreeStructure.root(), tests=TESTS, ensemble=START, loss="squared", clip=0.5, damping=0.0
        )
        with curator.open(event, purpose="root") as round_:
            return round_.select(gains, mechanism, purpose="split of the root").value

    text = faults(replay(fit, (X, np.full(40, 0.5)), added((X, np.full(40, 0.5)), [0.0, 0.0], -1.0)))
    assert "select 'split of the root': stated utilities move apart by at most 0.125" in text


def test_a_sum_over_rows_that_count_twice_is_found():
    text = faults(replay(lambda data: grown((np.repeat(data[0], 2, 0), np.repeat(data[1], 2))), DATA, FAR))
    assert "release 'leaves of tree 1': stated in a box of ((1.0, 0.5),)" in text


def test_labels_scaled_by_their_largest_one_are_found():
    """One row then changes every other row's gradient."""
    text = faults(replay(lambda data: grown((data[0], data[1] / np.abs(data[1]).max())), DATA, FAR))
    assert "stated at most 1 rows of the statistic move; found 2 do" in text


def test_a_trainer_that_looks_at_the_number_of_rows_is_found():
    def fit(data):
        return SGBDTRegressor(
            schema=SCHEMA, random_state=1, n_estimators=2, max_depth=1, reg_lambda=len(data[1]) / 10
        ).fit(*data)

    text = faults(replay(fit, DATA, FAR))
    assert "release 'leaves of tree 2': query.ensemble.trees[0].values[0]" in text


def test_what_only_the_model_holds_is_found():
    """Its last leaves show in no later call."""

    def fit(data):
        return SGBDTRegressor(
            schema=SCHEMA, random_state=1, n_estimators=1, max_depth=1, reg_lambda=len(data[1]) / 10
        ).fit(*data)

    assert faults(replay(fit, DATA, FAR)) == "model.reg_lambda: stated 4.0; found 4.1"
    assert "model[1]: stated" in faults(replay(lambda data: (grown(data)[0], float(data[1].mean())), DATA, FAR))


def test_a_model_is_compared_even_where_a_shift_is_too_wide(monkeypatch):
    halved(monkeypatch)
    text = faults(replay(lambda data: (grown(data)[0], len(data[1])), DATA, FAR))
    assert "release 'leaves of tree 1'" in text
    assert "model[1]: stated 40; found 41" in text


def test_a_trainer_that_stops_early_by_data_is_found():
    def fit(data):
        return grown(data, stop=lambda t: t == 1 and len(data[1]) > 40)

    assert "call 12, words: stated this call; found the end of the fit" in faults(replay(fit, DATA, FAR))

    def other(data):
        return grown(data, stop=lambda t: t == 1 and len(data[1]) <= 40)

    assert "after call 11: stated the end of the fit; found words" in faults(replay(other, DATA, FAR))


def test_a_number_of_rounds_by_data_is_found():
    text = faults(replay(lambda data: grown(data, rounds=1 + (data[1] > 0.99).sum()), DATA, FAR))
    assert text.startswith("call 1, grant 'fit': event.count: stated 1; found 2")


def test_a_clip_by_data_is_found():
    text = faults(replay(lambda data: grown(data, clip=float(np.abs(data[1]).max())), DATA, FAR))
    assert "call 1, grant 'fit': event.event.sensitivities[1]: stated" in text

    # Noise that scales with the clip hides it from the price, and from the ledger.
    def scaled(data):
        clip = float(np.abs(data[1]).max())
        return grown(data, clip=clip, noise=LaplaceMechanism(scales=(8.0, 8.0 * clip)))

    assert "release 'leaves of tree 1': query.statistic.clip: stated" in faults(replay(scaled, DATA, FAR))


def test_a_structure_by_labels_is_found():
    def fit(data):
        X, y = data
        return grown(data, structures=lambda t: one_split(0, 1 + int(7 * X[np.argmax(y), 0])))

    text = faults(replay(fit, DATA, FAR))
    assert "release 'leaves of tree 1': query.structure.split[0]: stated" in text


def test_candidates_at_the_quantiles_of_the_data_are_found():
    """What LightGBM and XGBoost do before any budget is spent."""

    def fit(data):
        cuts = np.unique(np.quantile(cells_of(data)[0], [0.25, 0.5, 0.75], method="higher")).astype(np.uint16)
        tests = SplitTests(feature=np.zeros(len(cuts), np.int32), split=cuts, equals=np.zeros(len(cuts), np.bool_))
        return chosen(data, tests=tests)

    data = (np.column_stack([np.repeat([0.1, 0.4, 0.7, 0.95], 10), X[:, 1]]), Y)
    text = faults(replay(fit, data, added(data, [0.0, 0.0], 0.0)))
    assert "select 'splits of level 0': query.tests.split[" in text


def test_a_first_guess_by_the_exact_mean_is_found():
    text = faults(replay(lambda data: chosen(data, start=Ensemble(initial_score=float(data[1].mean()))), DATA, FAR))
    assert "select 'splits of level 0': query.ensemble.initial_score: stated" in text


def test_a_tree_that_stops_at_small_leaves_is_found():
    """An exact number of rows shapes the tree: the row fills a leaf up that was too small."""

    def fit(data):
        return chosen(data, smallest=2, depth=2, mechanism=ExponentialMechanism(rate=300.0))

    few = (np.array([[0.05, 0.5]] * 4 + [[0.95, 0.5]]), np.array([1.0] * 4 + [-1.0]))
    text = faults(replay(fit, few, added(few, [0.95, 0.5], -1.0)))
    assert "after call 5: stated the end of the fit; found open 'level 1'" in text


def test_more_words_by_data_are_found():
    text = faults(replay(lambda data: grown(data, words=1 + len(data[1]) % 2), DATA, FAR))
    assert text == "call 2, words: words: stated 1; found 2"


def test_a_second_draw_by_data_is_found():
    """The draw is refused, or the release is: by an error, which one fit raises and the other does not."""

    def fit(data):
        ledger, grant = granted(event_of())
        curator = Curator(Table.from_data(*data, SCHEMA, loss="squared", bins=8), grant, SeededRandom(7))
        with curator.open(event_of(), purpose="once") as round_:
            release = round_.release(query(one_split(0, 4)), NOISE, purpose="first")
            if len(data[1]) > 40:
                round_.release(query(one_split(0, 4)), NOISE, purpose="second")
        return release.real

    text = faults(replay(fit, DATA, FAR))
    assert "call 5, release 'first': stated a fit that ends; found RoundViolation: release 'second'" in text


def test_an_error_that_a_fit_swallows_does_not_hide_what_was_found():
    def fit(data):
        try:
            return grown(data, clip=0.5 + len(data[1]) / 1000)[0]
        except PrivacyError:
            return None

    assert "call 1, grant" in faults(replay(fit, DATA, FAR))


def test_a_curator_that_lets_a_row_into_two_groups_is_found(monkeypatch):
    plain = CuratorGroups.round

    def everybody(self, group):
        round_ = plain(self, group)
        round_._drawn = np.ones(0, dtype=np.bool_)
        return round_

    monkeypatch.setattr(CuratorGroups, "round", everybody)
    found = replay(grouped, DATA, FAR, group=1)
    assert {violation.stated for violation in found.violations} == {"no change: the changed row is not in it"}
    assert {violation.where[-17:] for violation in found.violations} == {
        f"'group {k}, turn {turn}'" for k in (0, 2) for turn in (1, 2)
    }


def test_a_round_that_asks_more_than_its_sample_is_found(monkeypatch):
    monkeypatch.setattr(
        Table,
        "statistic",
        lambda self, query, sampled, budgets=None: STATISTIC(self, query, np.empty(0, np.bool_), None),
    )
    text = faults(replay(lambda data: grown(data, rate=0.5), DATA, FAR, sampled=False))
    assert (
        "release 'leaves of tree 3': stated no change: the changed row is not in it; found a shift of (1, -0.5)" in text
    )


def test_a_curator_that_releases_more_than_was_drawn_is_found(monkeypatch):
    monkeypatch.setattr(CuratorRound, "_take", lambda self, event, purpose: None)

    def fit(data):
        _, grant = granted(event_of())
        curator = Curator(Table.from_data(*data, SCHEMA, loss="squared", bins=8), grant, SeededRandom(7))
        with curator.open(event_of(), purpose="once") as round_:
            for turn in ("first", "second"):
                round_.release(query(one_split(0, 4)), NOISE, purpose=turn)

    text = faults(replay(fit, DATA, FAR))
    assert text == f"call 6, release 'second': stated 0 x {event_of()!r} left of the draw; found 1 x"


@pytest.mark.parametrize(
    ("drawing", "fit"),
    [
        ("sample", lambda data: grown(data, rate=0.5)),
        ("assign", lambda data: grouped(data, times=2)),
        ("allocate", lambda data: allocated(data, selected=1, steps=2, times=2)),
    ],
)
def test_rows_that_are_drawn_once_for_all_calls_are_found(drawing, fit, monkeypatch):
    """Each call was paid for as a sample, or an assignment, of its own."""
    kept = {}

    def once(plain):
        def drawn(table, *public):  # the source comes last
            if id(table) not in kept:
                kept[id(table)] = plain(table, *public)
            return kept[id(table)] if drawing == "allocate" else kept[id(table)].copy()

        return drawn

    broken(monkeypatch, AbstractRows, drawing, once)
    text = faults(replay(fit, DATA, FAR))
    assert f"{drawing}: stated at least 4 random words; found 0" in text


def test_a_row_in_more_steps_than_it_is_allocated_to_is_found(monkeypatch):
    """One row comes back in the last step: its loss is that of three steps, and two were paid for."""
    plain = RowAllocation.members

    def again(allocation, step):
        rows = plain(allocation, step)
        if step == 3:
            rows[0] = True
        return rows

    monkeypatch.setattr(RowAllocation, "members", again)
    # Under some seeds the row is in the last step anyway, and nothing is wrong.
    found = [replay(lambda data, seed=seed: seeded(data, seed), DATA, FAR) for seed in range(6)]
    texts = [faults(each) for each in found if not each.ok]
    assert texts
    assert all("allocated: stated each row in 2 of 4 steps; found a row in 3 of the first 4" in text for text in texts)


def seeded(data, seed):
    event = lw.RandomAllocation(event_of(), selected=2, steps=4)
    _, grant = granted(event)
    curator = Curator(Table.from_data(*data, SCHEMA, loss="squared", bins=8), grant, SeededRandom(seed))
    with curator.open_allocation(event, purpose="trees") as trees:
        return [trees.step().release(query(one_split(1, 3)), NOISE, purpose=f"tree {t}").real for t in range(4)]


def test_a_row_in_fewer_steps_than_it_is_allocated_to_is_found(monkeypatch):
    plain = RowAllocation.members
    monkeypatch.setattr(RowAllocation, "members", lambda own, step: plain(own, step) & (step < 2))
    text = faults(replay(allocated, DATA, FAR))
    assert "allocated: stated each row in 2 of 4 steps; found a row in 0 of the first" in text


def test_a_step_that_is_carried_out_twice_is_found(monkeypatch):
    plain = AllocatedRounds.step

    def stuck(rounds):
        rounds._done = min(rounds._done, 1)
        return plain(rounds)

    monkeypatch.setattr(AllocatedRounds, "step", stuck)
    text = faults(replay(allocated, DATA, FAR))
    assert "allocated: stated step 2 of the allocation; found step 1" in text


def test_noise_from_a_seed_that_was_used_before_is_found(monkeypatch):
    plain = CuratorRound.release

    def seeded(round_, *arguments, **named):
        round_._source = SeededRandom(9)
        return plain(round_, *arguments, **named)

    monkeypatch.setattr(CuratorRound, "release", seeded)
    text = faults(replay(grown, DATA, FAR))
    assert "release 'leaves of tree 1'" not in text
    assert "release 'leaves of tree 2': stated fresh random words; found 4 that were drawn before" in text


def test_one_draw_of_noise_for_all_leaves_is_found(monkeypatch):
    noise = LaplaceMechanism(scales=(3.0, 3.0))
    broken(
        monkeypatch,
        LaplaceMechanism,
        "randomise",
        lambda alone: lambda self, sums, grid, source: sums + alone(self, np.zeros((1, 2), np.int64), grid, source),
    )
    text = faults(replay(lambda data: grown(data, noise=noise), DATA, FAR))
    assert "release 'leaves of tree 1': stated at least 4 random words; found 2" in text


def test_levels_that_were_not_drawn_are_found(monkeypatch):
    """The ledger has one draw, and the tree three levels."""
    kept = {}

    def once(plain):
        def drawn(grant, event, **named):
            if id(grant) not in kept:
                kept[id(grant)] = grant, plain(grant, event, **named)
            return kept[id(grant)][1]

        return drawn

    broken(monkeypatch, Grant, "draw", once)
    text = faults(replay(chosen, DATA, FAR))
    assert "draw 'level 0'" not in text
    assert "draw 'level 2': stated its own entry on the ledger; found that of 'level 0'" in text


def test_a_round_that_was_opened_without_a_draw_is_found(monkeypatch):
    def unpaid(curator, event, *, purpose):
        receipt = kept.setdefault(id(curator), None) or curator._grant.draw(event, purpose=purpose, randomness="test")
        kept[id(curator)] = receipt
        sampled = curator._table.sample(1.0, curator._source)
        return CuratorRound(curator._table, sampled, Counter({event: 1}), receipt, curator._source, None)

    kept = {}
    broken(monkeypatch, Curator, "open", lambda _: unpaid)
    text = faults(replay(lambda data: (chosen(data), kept.clear())[0], DATA, FAR))
    assert "open 'level 0'" not in text
    assert "open 'level 1': stated a draw of the ledger; found none of 1 x BoundedRangeEvent" in text


@pytest.mark.parametrize("name", ["release", "select"])
def test_a_curator_that_hands_on_another_mechanism_is_found(name, monkeypatch):
    """With half the noise, and without the check that would refuse it."""

    def another(plain):
        def other(round_, query, mechanism, *, purpose):
            if name == "release":
                mechanism = EllipticalGaussianMechanism(stddevs=tuple(s / 2 for s in mechanism.stddevs))
            else:
                mechanism = ExponentialMechanism(rate=2 * mechanism.rate)
            return plain(round_, query, mechanism, purpose=purpose)

        return other

    broken(monkeypatch, CuratorRound, name, another)
    monkeypatch.setattr(CuratorRound, "_take", lambda self, event, purpose: None)
    text = faults(replay(grown if name == "release" else chosen, DATA, FAR))
    assert "as it was asked for; found" in text
    assert "left of the draw; found 1 x" in text


def test_a_choice_by_another_mechanism_than_the_query_was_given_is_found(monkeypatch):
    plain = SplitGains.select
    monkeypatch.setattr(
        SplitGains,
        "select",
        lambda self, mechanism, *rest: plain(self, ExponentialMechanism(rate=2 * mechanism.rate), *rest),
    )
    assert "as it was asked for; found ExponentialMechanism(rate=0.6)" in faults(replay(chosen, DATA, FAR))


def test_a_filter_that_charges_nobody_is_found(monkeypatch):
    plain = curators.row_costs
    monkeypatch.setattr(curators, "row_costs", lambda event: 0.0 * plain(event))

    def fit(data):
        return SGBDTRegressor(
            schema=SCHEMA, random_state=1, n_estimators=2, extra_trees=6, max_depth=1, filter="gdp"
        ).fit(*data)

    text = faults(replay(fit, DATA, added(DATA, [0.5, 0.5], 1.0)))
    assert "the filtered rounds of draw" in text
    assert "mu**2 a row; found" in text


# ------------------------------------------------------------------------------------------------ what it cannot see


def test_rows_that_were_left_out_before_the_sample_cannot_be_coupled():
    with pytest.raises(ReplayFailed, match="table of 30 rows, of data with 40"):
        replay(lambda data: grown((data[0][:30], data[1][:30]), rate=0.5), DATA, FAR)


def test_a_model_that_it_cannot_look_into_is_refused():
    with pytest.raises(ReplayFailed, match="model is a generator"):
        replay(lambda data: (x for x in data), DATA, FAR)


def test_noise_and_choices_that_it_does_not_know_are_refused():
    low, high = ColumnBounds(column=SCHEMA.features[0], smallest=0.01), RowCount()
    bounds, noise = PrivateBoundsMechanism(scale=1.0, threshold=3), DiscreteGaussianMechanism(scale=3.0)

    def selected(data):
        _, grant = granted(low.event(bounds, A))
        table = ColumnTable.from_data(data[0], SCHEMA)
        with Curator(table, grant, SeededRandom(7)).open(low.event(bounds, A), purpose="bounds") as round_:
            return round_.select(low, bounds, purpose="bounds of a").value

    with pytest.raises(ReplayFailed, match="ColumnBounds is a selection that a replay does not know"):
        replay(selected, DATA, FAR)

    def counted(data):
        event = noise.event(high.sensitivity(A), A)
        _, grant = granted(event)
        table = ColumnTable.from_data(data[0], SCHEMA)
        with Curator(table, grant, SeededRandom(7)).open(event, purpose="count") as round_:
            return round_.release(high, noise, purpose="count").real

    with pytest.raises(ReplayFailed, match="DiscreteGaussianMechanism.*is noise that a replay does not know"):
        replay(counted, DATA, FAR)


def test_neighbours_under_another_relation_are_refused():
    with pytest.raises(InvalidParameter, match="a row is added, which makes no neighbours under replace-one"):
        replay(lambda data: grown(data, adjacency=R), DATA, FAR)
    with pytest.raises(InvalidParameter, match="a row is replaced, which makes no neighbours under add-remove"):
        replay(grown, DATA, replaced(DATA, 0, [0.1, 0.1], 0.0))


def test_a_replay_inside_of_a_replay_is_refused_and_nothing_is_ever_wrapped():
    before = Curator.open, LeafMoments.sensitivity, LaplaceMechanism.randomise
    with pytest.raises(ReplayFailed, match="a replay: a replay cannot be opened inside of it"):
        replay(lambda data: replay(grown, data, FAR), DATA, FAR)
    with pytest.raises(ZeroDivisionError):
        replay(lambda data: 1 / 0, DATA, FAR)
    assert (Curator.open, LeafMoments.sensitivity, LaplaceMechanism.randomise) == before
    assert replay(grown, DATA, FAR).ok


def test_a_neighbour_is_one_row_away():
    with pytest.raises(InvalidParameter, match="2 rows are new"):
        Neighbour(data=DATA, rows=40, origin=(*range(38), -1, -1))
    with pytest.raises(InvalidParameter, match="distinct places"):
        Neighbour(data=DATA, rows=40, origin=(0, *range(39)))
