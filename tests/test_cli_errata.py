"""`ledgerwood errata`: the table, its JSON, its exit codes, and the page that is made of it."""

import dataclasses
import json
import math
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ledgerwood.cli.commands import app
from ledgerwood.errors import InvalidParameter
from ledgerwood.report.errata import FILES, MARK, audit_all, chosen, read_record, render, write_page
from ledgerwood.verification.errata import PAPERS, SPECIMENS, Finding, run_specimen

ROOT = Path(__file__).resolve().parents[1]
PAGE, FIGURES, TEXTS = ROOT / "docs" / "errata.md", ROOT / "docs" / "errata.json", ROOT / "docs" / "errata"
QUICK = "peers-data-classes"


def run(*words):
    return CliRunner().invoke(app, ["errata", *words])


def refused(*words):
    """What is said on standard error, on one line."""
    result = run(*words)
    assert result.exit_code == 1
    assert result.stdout == ""
    return " ".join(result.stderr.split())


def test_a_table_of_one():
    result = run("--only", QUICK)
    assert result.exit_code == 0
    assert "1 of 1 caught at alpha 0.001, seed 0" in result.stdout


def test_json_of_two():
    result = run("--only", QUICK, "--only", "sgbdt-label-range", "--json", "--seed", "3", "--alpha", "0.01")
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    assert (record["alpha"], record["seed"], record["caught"], record["specimens"]) == (0.01, 3, 2, 2)
    findings = [Finding.from_dict(found) for found in record["findings"]]
    assert [found.specimen for found in findings] == [QUICK, "sgbdt-label-range"]
    assert all(found.caught and found.bound > found.claimed and found.alpha == 0.01 for found in findings)


def test_exit_code_1_if_one_is_not_caught():
    """A tenth of the outputs that it takes."""
    words = ("--only", "peers-target-weight", "--only", QUICK, "--samples", "4000")
    result = run(*words)
    assert result.exit_code == 1
    assert "1 of 2 caught" in result.stdout
    assert "peers-target-weight: not caught in 4,000 outputs; the best test takes" in " ".join(result.stdout.split())
    shown = json.loads(run(*words, "--json").stdout)
    assert [found["caught"] for found in shown["findings"]] == [False, True]


def test_what_is_found_does_not_depend_on_who_else_is_audited():
    alone, both = (
        audit_all(chosen(None, names), samples=None, alpha=0.05, seed=1)[-1]
        for names in ((QUICK,), ("peers-data-bounds", QUICK))
    )
    assert dataclasses.replace(alone, seconds=0.0) == dataclasses.replace(both, seconds=0.0)


def test_a_paper_is_its_specimens():
    assert [chosen(paper, ()) for paper in PAPERS] == list(PAPERS.values())
    assert chosen(None, ()) == SPECIMENS


def test_an_unknown_name_and_one_of_another_paper_are_refused():
    assert "near names: sgbdt-label-range" in refused("--only", "sgbdt-label-rang")
    assert "'sgbdt-label-range' is unknown" in refused("--paper", "peers", "--only", "sgbdt-label-range")
    assert run("--paper", "nobody").exit_code == 2


def test_too_few_samples_say_how_many():
    assert re.search(r"--samples=3 must be at least \d+: .* peers-data-classes takes about \d+", refused(*_few("3")))
    assert "--samples=0 must be" in refused(*_few("0"))


def _few(number):
    return "--only", QUICK, "--samples", number


def test_a_level_and_a_seed_out_of_range_are_refused():
    assert "alpha=0.7 must be in (0, 0.5]" in refused("--only", QUICK, "--alpha", "0.7")
    assert "seed=-1 must be a whole number >= 0" in refused("--only", QUICK, "--seed", "-1")


def test_options_that_exclude_each_other_are_refused(tmp_path):
    assert "--stored needs --page" in refused("--stored")
    for words in (("--only", QUICK), ("--paper", "peers"), ("--samples", "5000")):
        assert "--page is of all specimens" in refused("--page", str(tmp_path / "errata.md"), *words)


@pytest.fixture(scope="module")
def stored():
    return read_record(FIGURES)


def texts():
    return {name: (TEXTS / f"{name}.md").read_text(encoding="utf-8") for name in FILES}


def test_the_page_is_what_the_generator_writes(tmp_path):
    """From the stored figures, without running an auditor, byte for byte; the figures stay as they are, too."""
    shutil.copytree(TEXTS, tmp_path / "errata")
    shutil.copy(FIGURES, tmp_path)
    result = run("--page", str(tmp_path / "errata.md"), "--stored")
    assert result.exit_code == 0
    assert (tmp_path / "errata.md").read_bytes() == PAGE.read_bytes()
    assert (tmp_path / "errata.json").read_bytes() == FIGURES.read_bytes()


def test_the_stored_findings_are_of_these_specimens(stored):
    findings, alpha, _ = stored
    assert [found.specimen for found in findings] == [specimen.name for specimen in SPECIMENS]
    for found, specimen in zip(findings, SPECIMENS, strict=True):
        assert found.caught
        assert found.alpha == alpha
        assert (found.auditor, found.verdict) == (specimen.auditor, specimen.verdict)
        assert found.witness == pytest.approx(specimen.witness, rel=1e-12)  # exp and log differ by machine
        assert found.claimed_delta == pytest.approx(specimen.claimed_delta(found.witness), rel=1e-9)
        assert found.exact_delta == pytest.approx(specimen.delta(found.witness), rel=1e-9)


def test_no_stored_bound_is_above_the_truth(stored):
    for found, specimen in zip(stored[0], SPECIMENS, strict=True):
        epsilon, delta = (found.bound, found.at) if found.quantity == "epsilon" else (found.at, found.bound)
        assert specimen.delta(min(epsilon, 700.0)) >= delta, found.specimen


@pytest.mark.parametrize("name", [QUICK, "peers-target-weight"])
def test_stored_findings_are_found_again(stored, name):
    """Those whose event is not learned: the same draws, the same counts."""
    findings, alpha, seed = stored
    (again,) = audit_all(chosen(None, (name,)), samples=None, alpha=alpha, seed=seed)
    found = next(found for found in findings if found.specimen == name)
    assert again.test == found.test
    assert again.bound == pytest.approx(found.bound, rel=1e-4)
    assert (again.caught, again.samples, again.at) == (found.caught, found.samples, found.at)


def test_the_text_names_every_specimen_once_under_its_anchor():
    for paper, specimens in PAPERS.items():
        text = texts()[paper]
        assert sorted(MARK.findall(text)) == sorted(specimen.name for specimen in specimens)
        for specimen in specimens:
            above = text[: text.index(f"{{{{ {specimen.name} }}}}")]
            assert re.findall(r"^\((errata-[\w-]+)\)=$", above, flags=re.MULTILINE)[-1] == specimen.anchor


def test_a_page_that_lost_or_doubled_a_specimen_is_refused(stored):
    findings, text = stored[0], texts()
    lost = {**text, "peers": text["peers"].replace(f"{{{{ {QUICK} }}}}", "")}
    with pytest.raises(InvalidParameter, match=f"'{QUICK}' must be named once in the text, and is 0 times"):
        render(lost, findings)
    with pytest.raises(InvalidParameter, match="and is 2 times"):
        render({**text, "claims": f"{{{{ {QUICK} }}}}"}, findings)
    with pytest.raises(InvalidParameter, match="'peers-nothing' is unknown"):
        render({**text, "claims": "{{ peers-nothing }}"}, findings)
    with pytest.raises(InvalidParameter, match="not those of the specimens"):
        render(text, findings[1:])


def test_a_page_without_text_or_figures_is_refused_and_nothing_is_written(tmp_path, stored):
    page = tmp_path / "errata.md"
    assert "No such file" in refused("--page", str(page), "--stored")
    (tmp_path / "errata.json").write_text("[]")
    assert "is no record of findings" in refused("--page", str(page), "--stored")
    with pytest.raises(FileNotFoundError):
        write_page(page, stored[0], alpha=0.001, seed=0)
    assert not page.exists()


def test_a_finding_that_was_missed_is_on_the_page_as_such(stored):
    findings = [dataclasses.replace(found, caught=False) if found.specimen == QUICK else found for found in stored[0]]
    assert "*Not caught* by data independence" in render(texts(), findings)
    assert "*Not caught*" not in PAGE.read_text(encoding="utf-8")


def test_a_finding_by_hand():
    """1000 runs are enough to say that a class count differs; the bound is that of an exact binomial."""
    (specimen,) = chosen(None, (QUICK,))
    found = run_specimen(specimen, n=1001, alpha=0.05)
    inside = int(re.search(r"came again in (\d+) runs", found.test)[1])
    odds = 0.05 ** (1 / inside)
    assert found.bound == pytest.approx(math.log(odds / (1 - odds)), rel=1e-6)
