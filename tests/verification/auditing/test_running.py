"""Audits over time: the process against its definition, its error at every time, and a file that forgets nothing."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy import stats

import ledgerwood as lw
from ledgerwood.errors import AuditFailed, InvalidParameter, PrivacyWarning
from ledgerwood.verification.auditing import AuditLog, RunningAudit, anytime
from ledgerwood.verification.auditing.sequential import log_wealth_of

A = lw.Adjacency.ADD_REMOVE


def begun(epsilon=1.0, delta=0.0, alpha=0.05, **others):
    claim = lw.Budget(epsilon=epsilon, delta=delta, adjacency=A)
    return RunningAudit(**({"claim": claim, "alpha": alpha, "event": "output above 1/2"} | others))


@pytest.mark.parametrize(("delta", "block"), [(0.0, (1, 1)), (0.05, (1, 2)), (0.0, (3, 2))])
def test_the_mean_of_the_process_is_one_at_the_truth(delta, block):
    """All outcomes of three blocks, by their probabilities at the edge of the claim."""
    q, epsilon = 0.2, 0.9
    p = math.exp(epsilon) * q + delta
    cells = list(itertools.product(range(block[0] + 1), range(block[1] + 1)))
    chances = [stats.binom.pmf(i, block[0], p) * stats.binom.pmf(j, block[1], q) for i, j in cells]
    factor, mean = math.exp(epsilon), 0.0
    payoffs = np.array([[(i / block[0] - factor * j / block[1] - delta) / (factor + delta) for i, j in cells]])
    for places in itertools.product(range(len(cells)), repeat=3):
        times = np.bincount(places, minlength=len(cells)).astype(float)
        mean += math.prod(chances[place] for place in places) * math.exp(log_wealth_of(payoffs, times)[0])
    assert mean == pytest.approx(1.0, abs=1e-9)
    assert mean <= 1.0


@pytest.mark.slow  # a rate of error over paths
@pytest.mark.parametrize(("delta", "ways"), [(0.0, "first"), (0.02, "first"), (0.0, "both")])
def test_the_bound_is_ever_above_the_truth_at_most_so_often(delta, ways):
    """400 paths of 600 blocks at the truth, looked at 12 times; alpha .1 and three standard errors (.045)."""
    rng, epsilon, q, alpha = np.random.default_rng(20_261_140), 0.7, 0.15, 0.1
    p, factor = math.exp(epsilon) * q + delta, math.exp(epsilon if delta == 0.0 else epsilon + 1e-3)
    # A bound above the truth has refused it, or with delta > 0 the first point of the grid above it.
    first, second = rng.random((400, 600)) < p, rng.random((400, 600)) < q
    looks, wrong = np.arange(50, 601, 50), np.zeros(400, bool)
    cells = ((0, 0), (0, 1), (1, 0), (1, 1))
    payoffs = [np.array([[(i - factor * j - delta) / (factor + delta) for i, j in cells]])]
    payoffs += [np.array([[(j - factor * i - delta) / (factor + delta) for i, j in cells]])] if ways == "both" else []
    events = np.stack([(first == i) & (second == j) for i, j in cells])
    tables = [events[:, :, :look].sum(axis=2) for look in looks]
    known = {}
    for table in tables:
        for path, times in enumerate(table.T):
            key = tuple(times.tolist())
            if key not in known:
                logs = [float(log_wealth_of(part, times.astype(float))[0]) for part in payoffs]
                known[key] = float(np.logaddexp.reduce(logs)) - math.log(len(logs)) >= -math.log(alpha)
            wrong[path] |= known[key]
    assert 0 < wrong.sum() <= 400 * (alpha + 3 * math.sqrt(alpha * (1 - alpha) / 400))
    # The class draws the same line.
    key, refused = next((key, flag) for key, flag in known.items() if flag)
    state = begun(delta=delta, alpha=alpha, ways=ways, counts=(key[:2], key[2:]))
    assert (state.update(with_row=[0], without=[0]).epsilon_lower > epsilon) == refused


def test_uneven_arrivals_and_batches_change_nothing():
    """However outputs arrive, after all of them the counts are those of the pairs in order; the rest waits."""
    rng = np.random.default_rng(20_261_141)
    first, second = rng.random(300) < 0.5, rng.random(260) < 0.2
    at_once = begun().update(with_row=first, without=second)
    step = begun().update(with_row=first[:10]).update(without=second)
    assert step.epsilon_lower <= at_once.epsilon_lower
    for start in range(10, 300, 37):
        step = step.update(with_row=first[start : start + 37])
    assert (step.counts, step.waiting_with, step.waiting_without) == (
        at_once.counts, at_once.waiting_with, at_once.waiting_without,
    )  # fmt: skip
    assert (len(step.waiting_with), step.runs) == (40, 560)
    table = np.zeros((2, 2), int)
    np.add.at(table, (first[:260].astype(int), second.astype(int)), 1)
    assert step.counts == tuple(map(tuple, table.tolist()))


def test_it_catches_a_broken_claim_and_stays_caught():
    rng = np.random.default_rng(20_261_142)
    state = begun(alpha=1e-3)
    for _ in range(8):
        state = state.update(with_row=rng.laplace(1.0, 0.5, 250) > 1.0, without=rng.laplace(0.0, 0.5, 250) > 1.0)
    assert state.rejected
    assert 1.0 < state.epsilon_lower <= 2.0
    later = state.update(with_row=np.zeros(5_000, int), without=np.ones(5_000, int))
    assert later.rejected
    assert later.epsilon_lower == state.epsilon_lower
    assert "refuted after 9 updates" in str(later)
    # Beside labels by coins: pairs say at least as much.
    pairs = begun(counts=((4_080, 920), (4_080, 920))).update(with_row=[1], without=[0])
    assert pairs.epsilon_lower >= anytime(5_001, 1_840, 20_002, delta=0.0, alpha=0.05) - 1e-3


def test_the_other_direction_costs_little_and_a_rare_event_gains_by_blocks():
    pairs = {"counts": ((4_000, 1_000), (4_000, 1_000))}
    first, both = (begun(ways=ways, **pairs).update(with_row=[1], without=[0]) for ways in ("first", "both"))
    assert first.epsilon_lower - 0.03 < both.epsilon_lower < first.epsilon_lower
    turned = begun(ways="both", counts=((4_000, 4_000), (1_000, 1_000))).update(with_row=[0], without=[1])
    assert turned.epsilon_lower == pytest.approx(both.epsilon_lower)
    assert begun(delta=1e-3, **pairs).update(with_row=[1], without=[0]).epsilon_lower < first.epsilon_lower


def test_a_state_survives_its_json_and_no_figure_of_it_can_be_lowered():
    state = begun().update(with_row=[True] * 60, without=[False] * 61)
    assert RunningAudit.from_json(state.to_json()) == state
    assert state.previous == begun().digest != state.digest
    for name, value in (("epsilon_lower", 0.0), ("evidence", 0.0), ("counts", [[1]]), ("version", 2), ("alpha", 7)):
        changed = json.dumps(json.loads(state.to_json()) | {name: value})
        with pytest.raises(AuditFailed):
            RunningAudit.from_json(changed).require_own_figures()


def test_values_outside_are_refused():
    for wrong in ({"event": " "}, {"block": (1,)}, {"block": (0, 1)}, {"block": (1, 65)}, {"ways": "all"},
                  {"counts": ((1, 2),)}, {"counts": ((1, 2), (3, -4))}, {"waiting_with": "012"}):  # fmt: skip
        with pytest.raises(InvalidParameter):
            begun(**wrong)
    for column in ([0.5], [2], [[1]], ["1"]):
        with pytest.raises(InvalidParameter, match="with_row"):
            begun().update(with_row=column)


def test_a_file_goes_on_in_other_processes_and_never_begins_anew(tmp_path):
    path, claim = tmp_path / "count.audit", lw.Budget(epsilon=1.0, delta=0.0, adjacency=A)
    log = AuditLog.start(path, claim=claim, event="above", alpha=0.05)
    with pytest.raises(AuditFailed, match="exists"):
        AuditLog.start(path, claim=claim, event="above", alpha=0.05)
    log.update(with_row=[1] * 30)
    other = AuditLog.resume(path)
    other.update(without=[0] * 20)
    noted = other.digest
    assert log.update(without=[0] * 15).runs == 65  # it has read what the other one wrote
    again = AuditLog.resume(path, expected=noted)
    assert again.state == log.state
    assert again.state.rejected
    with pytest.raises(AuditFailed, match="taken back"):
        AuditLog.resume(path, expected="0" * 64)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(AuditFailed, match="taken back"):
        log.update(with_row=[1])
    changed = lines[-1].replace(b'"above"', b'"below"')
    path.write_bytes(b"".join(lines[:-1]) + changed)  # of the same length
    for holder in (log, again):
        with pytest.raises(AuditFailed, match="the last known state was changed"):
            holder.update(with_row=[1])
    assert path.read_bytes() == b"".join(lines[:-1]) + changed
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(AuditFailed, match="does not follow"):
        AuditLog.resume(path)
    path.write_bytes(b"".join(lines) + lines[-1][:40])
    with pytest.warns(PrivacyWarning, match="not completed"):
        torn = AuditLog.resume(path)
    assert torn.state == log.state
    assert path.read_bytes() == b"".join(lines)
    path.unlink()
    for lost in (lambda: AuditLog.resume(path), lambda: log.update(with_row=[1])):
        with pytest.raises(AuditFailed, match="cannot"):
            lost()
    path.write_bytes(b"")
    with pytest.raises(AuditFailed, match="no complete state"):
        AuditLog.resume(path)
