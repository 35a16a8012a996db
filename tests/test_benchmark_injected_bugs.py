"""Injected bugs, in small: each is found by one of the quick checks in one system, and the honest trainers by none."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import injected_bugs
from benchmarks.bug_detectors import DETECTORS, detect
from benchmarks.bug_injections import BUGS, NULL
from benchmarks.bug_systems import ROWS, SYSTEMS
from ledgerwood.curator import Curator
from ledgerwood.curator.rounds import CuratorRound
from ledgerwood.curator.tables.trees import TreeTable
from ledgerwood.mechanisms import EllipticalGaussianMechanism, ExponentialMechanism, LaplaceMechanism

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks"
QUICK = ("refusal", "ledger", "replay", "independence")
LAW = {"half the noise, by the sampler"}
"""Bugs that only the noise's law, or an audit, can find."""
BY_NAME = {system.name: system for system in SYSTEMS}
BUG = {bug.name: bug for bug in BUGS}


def pairs():
    """A boosted system for each bug, in turn, and PrivaTree, whose fits are quick, for all."""
    for turn, bug in enumerate(BUGS[1:]):
        boosted = [name for name in BY_NAME if name not in (*bug.absent, "PrivaTree")]
        yield bug.name, boosted[turn % len(boosted)]
        if "PrivaTree" not in bug.absent:
            yield bug.name, "PrivaTree"


@pytest.mark.slow_after(2)  # an audit of each injected bug
@pytest.mark.parametrize(("bug", "system"), [*pairs()])
def test_a_bug_is_found(bug, system):
    said = detect(BUG[bug], BY_NAME[system], 0, ("refusal", "noise law") if bug in LAW else QUICK)
    assert any(found for found, _ in said.values()), said


@pytest.mark.slow  # the false alarms beside the bugs that are found
@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_an_honest_trainer_is_accused_by_nothing(system):
    said = detect(NULL, system, 0, (*QUICK, "noise law"))
    assert set(said) == {*QUICK, "noise law"}, said
    assert not any(found for found, _ in said.values()), said


@pytest.mark.slow  # needs power: many fits
@pytest.mark.parametrize(("name", "runs"), [("none", 100), ("half the noise, by the sampler", 400)])
def test_an_audit_of_labels_finds_half_the_noise(name, runs):
    """By 300 or 1200 fits of a tree without splits: an honest bound is above epsilon 1 once in a thousand."""
    bug = BUG[name]
    found, words = detect(bug, BY_NAME["PrivaTree"], runs, ("refusal", "audit"))["audit"]
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


def test_the_rows_hold_what_the_bugs_need():
    for system in SYSTEMS:
        X, y = system.rows()
        assert X.shape == (ROWS, 2)
        for name, neighbour in system.neighbours((X, y)).items():
            assert len(neighbour.data[1]) == ROWS + (-1 if name == "one less" else 1)


def test_a_row_of_the_table_and_what_fails():
    bug = BUG["half the charge"]
    row = injected_bugs.measured(bug, [BY_NAME["PrivaTree"]], 0, ("refusal", "ledger"))
    assert injected_bugs.finders(row["systems"]["PrivaTree"]) == ["ledger"]
    assert injected_bugs.failures({bug.name: row}) == []
    assert injected_bugs.failures({NULL.name: row}) == ["PrivaTree, correct, is rejected by: ledger"]
    blind = {"words": "", "systems": {"PrivaTree": {"said": {"ledger": {"found": False, "words": ""}}}}}
    assert injected_bugs.failures({bug.name: blind}) == ["half the charge, PrivaTree: found by nothing"]
    absent = {"words": "", "systems": {"PrivaTree": {"absent": "none"}}}
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
