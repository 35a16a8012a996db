"""`ledgerwood errata`, which runs each published mechanism past its auditor, and the text of docs/errata.md.

The page's text is in docs/errata/, one file a paper. A line `{{ name }}` stands for the specimen of that name, a table
and a finding: its claimed and exact figures are computed, what its auditor measured is read from the JSON beside the
page. All specimens are in a table at the end.
"""

import json
import re
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ledgerwood.errors import InvalidParameter
from ledgerwood.report.options import PaperName
from ledgerwood.report.printing import print_json
from ledgerwood.verification.errata import PAPERS, SPECIMENS, Finding, Specimen, find, run_specimen

MARK = re.compile(r"^\{\{ ([\w-]+) \}\}$", flags=re.MULTILINE)
FILES = ("introduction", *PAPERS, "claims")


def render(texts: Mapping[str, str], findings: Sequence[Finding]) -> str:
    """The page.

    Raises:
        InvalidParameter: the text names an unknown specimen, or one twice or not at all, or the findings are not of all
            specimens.
    """
    by_name = {found.specimen: found for found in findings}
    if sorted(by_name) != sorted(specimen.name for specimen in SPECIMENS):
        raise InvalidParameter(
            "the stored findings are not those of the specimens: run the auditors again (unit: names)"
        )
    named = [name for text in texts.values() for name in MARK.findall(text)]
    for specimen in SPECIMENS:
        if named.count(specimen.name) != 1:
            raise InvalidParameter(
                f"specimen={specimen.name!r} must be named once in the text, and is {named.count(specimen.name)} times "
                "(unit: lines)"
            )

    def entry(mark: re.Match[str]) -> str:
        specimen = find(mark[1], SPECIMENS)
        return f"{figures_of(specimen)}\n\n{sentence(by_name[specimen.name])}"

    body = [MARK.sub(entry, texts[name]).rstrip("\n") for name in FILES]
    return "\n\n".join([*body, summary(by_name)]) + "\n"


def figures_of(specimen: Specimen) -> str:
    """The claimed and exact figures of one specimen."""
    kind = type(specimen)
    head = (f"| {{py:class}}`~{kind.__module__}.{kind.__name__}` | claimed | exact |", "|---|---|---|")
    return "\n".join([*head, *(f"| {row.quantity} | {row.claimed:.4g} | {row.exact:.4g} |" for row in specimen.rows())])


def sentence(found: Finding) -> str:
    """One sentence: which audit detects the specimen, and what was measured."""
    verb = "Caught" if found.caught else "Not caught"
    return f"*{verb}* by {found.auditor}, {found.samples:,} outputs: {found.decided()}."


def summary(by_name: Mapping[str, Finding]) -> str:
    """All specimens in one table, with the outputs that the best test would take."""
    confidence = 100.0 * (1.0 - next(iter(by_name.values())).alpha)
    words = (
        f"`ledgerwood errata` runs them. *Measured* is a lower bound of confidence {confidence:.6g}%, without further "
        "assumptions; *needed* is about how many outputs the best test takes if its event is known, 95 times in 100. "
        "An auditor that learns the event takes more."
    )
    head = "| specimen | verdict | claim | auditor | measured | outputs | needed |"
    lines = [
        "(errata-table)=",
        "## All specimens, and who catches them",
        "",
        words,
        "",
        head,
        "|---|---|---|---|---|---|---|",
    ]
    for specimen in SPECIMENS:
        found = by_name[specimen.name]
        lines.append(
            f"| {{ref}}`{specimen.name} <{specimen.anchor}>` | {found.verdict} | {found.claim} | {found.auditor} | "
            f"{found.decided()} | {found.samples:,} | {found.needed:,} |"
        )
    return "\n".join(lines)


def chosen(paper: PaperName | None, names: Sequence[str]) -> tuple[Specimen, ...]:
    """The specimens of a paper, or those named, or all.

    Raises:
        InvalidParameter: a name that is unknown (it lists the nearest), or of another paper.
    """
    among = SPECIMENS if paper is None else PAPERS[paper]
    return tuple(find(name, among) for name in names) or among


def audit_all(
    specimens: Sequence[Specimen], *, samples: int | None, alpha: float, seed: int, console: Console | None = None
) -> list[Finding]:
    """Each by its own auditor, with randomness of its own: what is found does not depend on who else is audited.

    Args:
        specimens: which.
        samples: outputs a specimen; None for each one's own number.
        alpha: probability that one of them would be caught if it were right.
        seed: a whole number, >= 0.
        console: where to show progress; None for nowhere.

    Raises:
        InvalidParameter: too few samples for one of them, an alpha outside (0, 1/2], or a negative seed.
    """
    if seed < 0:
        raise InvalidParameter(f"seed={seed!r} must be a whole number >= 0 (unit: seed)")
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=console is None, transient=True) as progress:
        task = progress.add_task("specimens", total=len(specimens))
        found = []
        for specimen in specimens:
            progress.update(task, description=specimen.name)
            rng = np.random.default_rng([seed, zlib.crc32(specimen.name.encode())])
            found.append(run_specimen(specimen, n=samples, alpha=alpha, rng=rng))
            progress.advance(task)
    return found


def record(findings: Sequence[Finding], *, alpha: float, seed: int) -> dict[str, Any]:
    """The result as JSON, as it is printed and stored next to the page."""
    return {
        "alpha": alpha,
        "seed": seed,
        "caught": sum(found.caught for found in findings),
        "specimens": len(findings),
        "findings": [found.to_dict() for found in findings],
    }


def read_record(path: Path) -> tuple[list[Finding], float, int]:
    """Findings, alpha and seed of the last time that the auditors were run.

    Raises:
        OSError: there is no such file.
        InvalidParameter: it is no such record.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return [Finding.from_dict(found) for found in stored["findings"]], float(stored["alpha"]), int(stored["seed"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidParameter(f"{path} is no record of findings ({error}): run them again (unit: JSON)") from None


def write_page(page: Path, findings: Sequence[Finding], *, alpha: float, seed: int) -> None:
    """Write docs/errata.md from the text in the folder docs/errata, and the figures beside it, docs/errata.json.

    Raises:
        OSError: a file of the text is missing.
        InvalidParameter: as `errata_page.render`.
    """
    texts = {name: (page.with_suffix("") / f"{name}.md").read_text(encoding="utf-8") for name in FILES}
    text = render(texts, findings)
    figures = json.dumps(record(findings, alpha=alpha, seed=seed), indent=1, allow_nan=False)
    page.with_suffix(".json").write_text(figures + "\n", encoding="utf-8")
    page.write_text(text, encoding="utf-8")


def show_findings(findings: Sequence[Finding], *, alpha: float, seed: int, as_json: bool) -> None:
    """A table for people, or one JSON object."""
    if as_json:
        print_json(record(findings, alpha=alpha, seed=seed))
        return
    table = Table(title="published mechanisms that lose more than they claim", title_justify="left")
    table.add_column("specimen, auditor, outputs", overflow="fold", ratio=5)
    table.add_column("claim, and exact loss", overflow="fold", ratio=5)
    table.add_column("found", overflow="fold", ratio=5)
    table.add_column("caught")
    for found in findings:
        table.add_row(
            f"[bold]{found.specimen}[/]\n{found.auditor}, {found.samples:,}",
            escape(
                f"{found.claim}\ndelta {found.exact_delta:.4g} at {found.witness:.4g}, not {found.claimed_delta:.4g}"
            ),
            escape(found.decided()),
            "yes" if found.caught else "[bold red]no[/]",
        )
    console = Console()
    console.print(table)
    missed = [found for found in findings if not found.caught]
    console.print(
        f"{len(findings) - len(missed)} of {len(findings)} caught at alpha {alpha:g}, seed {seed}", highlight=False
    )
    for found in missed:
        console.print(
            escape(f"{found.specimen}: not caught in {found.samples:,} outputs; the best test takes {found.needed:,}"),
            highlight=False,
        )


def errata(
    paper: PaperName | None,
    only: Sequence[str],
    *,
    samples: int | None,
    alpha: float,
    seed: int,
    page: Path | None,
    stored: bool,
    as_json: bool,
) -> bool:
    """Run, print, or write the page; say whether all were caught.

    Raises:
        InvalidParameter: options that exclude each other; and as `chosen`, `audit_all` and `write_page`.
    """
    if page is None and stored:
        raise InvalidParameter("--stored needs --page: it says where the figures of the page come from (unit: option)")
    if page is not None and (paper is not None or only or samples is not None):
        raise InvalidParameter("--page is of all specimens: leave out --paper, --only and --samples (unit: option)")
    console = Console(file=sys.stderr)
    if page is not None and stored:
        findings, alpha, seed = read_record(page.with_suffix(".json"))
    else:
        findings = audit_all(
            chosen(paper, only),
            samples=samples,
            alpha=alpha,
            seed=seed,
            console=console if console.is_terminal else None,
        )
    if page is not None:
        write_page(page, findings, alpha=alpha, seed=seed)
    show_findings(findings, alpha=alpha, seed=seed, as_json=as_json)
    return all(found.caught for found in findings)
