"""Injected bugs, in small: each is found by one of the quick checks in one system, and the honest trainers by none."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import injected_bugs
from benchmarks.bug_detectors import DETECTORS, detect
from benchmarks.bug_injections import BUGS, NULL
from benchmarks.bug_systems import ROWS, SYSTEMS
from ledgerwood.curator import Curator, FeatureQuantiles, GridlessGains
from ledgerwood.curator.queries.registry import TREE_CHOICES
from ledgerwood.curator.rounds import CuratorRound
from ledgerwood.curator.tables.trees import TreeTable
from ledgerwood.mechanisms import EllipticalGaussianMechanism, ExponentialMechanism, LaplaceMechanism
from ledgerwood.verification import check_trainer

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks"
QUICK = ("refusal", "ledger", "replay", "independence")
LAW = {"half the noise, by the sampler"}
"""Bugs that only the noise's law, or an audit, can find."""
BY_NAME = {system.name: system for system in SYSTEMS}
BUG = {bug.name: bug for bug in BUGS}


def pairs():
    """A boosted system for each bug, in turn, and each PrivaTree, whose fits are quick, for all."""
    for turn, bug in enumerate(BUGS[1:]):
        here = [system for system in SYSTEMS if system.name not in bug.absent]
        boosted = [system.name for system in here if not system.chooses]
        if boosted:
            yield bug.name, boosted[turn % len(boosted)]
        yield from ((bug.name, system.name) for system in here if system.chooses)


@pytest.mark.slow_after(2)  # an audit of each injected bug
@pytest.mark.parametrize(("bug", "system"), [*pairs()])
def test_a_bug_is_found(bug, system):
    said = detect(BUG[bug], BY_NAME[system], 0, ("refusal", "noise law") if bug in LAW else QUICK)
    assert any(found for found, _ in said.values()), said


@pytest.mark.slow  # a fit of each system
def test_the_systems_make_every_choice_that_a_tree_may_need(monkeypatch):
    """A bug in a choice that no system makes would be found by nothing, and missed by nobody."""
    asked, select = set(), CuratorRound.select

    def watched(self, query, mechanism, *, purpose):
        asked.add(type(query))
        return select(self, query, mechanism, purpose=purpose)

    monkeypatch.setattr(CuratorRound, "select", watched)
    for system in SYSTEMS:
        system.kind(**system.parameters).fit(*system.rows())
    assert asked == set(TREE_CHOICES.kinds) - {GridlessGains, FeatureQuantiles}  # of presets that no system here has


@pytest.mark.slow  # a kit's fits
@pytest.mark.parametrize("bug", ["labels without their noise", "a level without its noise"])
@pytest.mark.parametrize("system", [system for system in SYSTEMS if system.chooses], ids=lambda system: system.name)
def test_the_kit_for_trainers_finds_choices_without_noise(system, bug):
    """Among many rows one seldom changes what is best; the kit's few rows do."""
    parameters = {name: value for name, value in system.parameters.items() if name != "random_state"}
    with BUG[bug].active(system):
        found = check_trainer(system.kind(**parameters))
    assert "replay" in {check.name for check in found.checks if check.verdict == "failed"}, found


@pytest.mark.slow  # the false alarms beside the bugs that are found
@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_an_honest_trainer_is_accused_by_nothing(system):
    said = detect(NULL, system, 0, (*QUICK, "noise law"))
    assert set(said) == {*QUICK, "noise law"}, said
    assert not any(found for found, _ in said.values()), said


@pytest.mark.slow  # needs power: many fits
@pytest.mark.parametrize(
    ("name", "runs"), [("none", 100), ("half the noise, by the sampler", 400), ("labels without their noise", 100)]
)
@pytest.mark.parametrize("system", [system for system in SYSTEMS if system.chooses], ids=lambda system: system.name)
def test_an_audit_of_labels_finds_too_little_noise(system, name, runs):
    """By 300 to 2,400 fits of a tree with one choice: an honest bound is above epsilon 1 once in a thousand."""
    bug = BUG[name]
    found, words = detect(bug, system, runs, ("refusal", "audit"))["audit"]
    assert found == (bug is not NULL), words


def test_nothing_stays_patched():
    watched = [
        (CuratorRound, "release"), (CuratorRound, "select"), (CuratorRound, "_take"), (Curator, "open"),
        (TreeTable, "statistic"), (TreeTable, "utilities"), (EllipticalGaussianMechanism, "randomise"),
        (LaplaceMechanism, "randomise"), (ExponentialMechanism, "select"),
    ]  # fmt: skip
    before = [vars(owner)[name] for owner, name in watched]
    for bug in BUGS:
        for system in SYSTEMS:
            if system.name not in bug.absent:
                with bug.active(system):
                    pass
    assert [vars(owner)[name] for owner, name in watched] == before


@pytest.mark.slow  # audits twice
def test_a_bug_in_a_cost_is_gone_after_it():
    """Calibrated plans are remembered in the process; those of a wrong cost are not."""
    system = BY_NAME["PrivaTree"]
    for name in ("labels not granted", "none"):
        found, words = detect(BUG[name], system, 0, ("refusal",))["refusal"]
        assert found == (name != "none"), words


def test_the_rows_hold_what_the_bugs_need():
    for system in SYSTEMS:
        X, y = system.rows()
        assert X.shape == (ROWS, 2)
        for name, neighbour in system.neighbours((X, y)).items():
            assert len(neighbour.data[1]) == ROWS + (-1 if name == "one less" else 1)


def test_a_row_of_the_table_and_what_fails(tmp_path):
    bug = BUG["half the charge"]
    row = injected_bugs.measured(bug, [BY_NAME["PrivaTree"]], 0, ("refusal", "ledger"))
    assert injected_bugs.finders(row["systems"]["PrivaTree"]) == ["ledger"]
    assert injected_bugs.failures({bug.name: row}) == []
    assert injected_bugs.failures({NULL.name: row}) == ["PrivaTree, correct, is rejected by: ledger"]
    blind = {"words": "", "systems": {"PrivaTree": {"said": {"ledger": {"found": False, "words": ""}}}}}
    assert injected_bugs.failures({bug.name: blind}) == ["half the charge, PrivaTree: found by nothing"]
    absent = {"words": "", "systems": {"PrivaTree": {"absent": "none"}}}
    stored = tmp_path / "stored.json"
    injected_bugs.keep(stored, {"bugs": {bug.name: {"words": "old", "systems": {"DPBoost": {"absent": "no"}}}}})
    both = injected_bugs.beside(stored, bug.name, row)
    assert (both["words"], list(both["systems"])) == (bug.words, ["DPBoost", "PrivaTree"])
    assert injected_bugs.beside(None, bug.name, row) == injected_bugs.beside(tmp_path / "none", bug.name, row) == row
    assert injected_bugs.failures({bug.name: absent, NULL.name: blind}) == []
    console = Console(width=200, record=True)
    console.print(injected_bugs.table({bug.name: row, "other": absent, "blind": blind}))
    console.print(injected_bugs.words({bug.name: row}, system="PrivaTree"))
    text = console.export_text()
    assert "NOTHING" in text
    assert "is below what the plan costs, at least" in " ".join(text.split())


def test_the_stored_table_is_whole_and_without_a_hole():
    found = json.loads((PAGE / "injected_bugs.json").read_text())["bugs"]
    assert list(found) == [bug.name for bug in BUGS]
    assert injected_bugs.failures(found) == []
    for bug in BUGS:
        for system in SYSTEMS:
            cell = found[bug.name]["systems"][system.name]
            assert ("absent" in cell) == (system.name in bug.absent)
            run = set(DETECTORS) if bug.audited else set(DETECTORS) - {"audit"}
            assert "absent" in cell or set(cell["said"]) in ({"refusal"}, run)
