"""The pages in docs/reproduction: one a paper, and their summary; written by the command, kept in the repository."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.reproduce.items import KINDS, PLURALS, VERDICTS, Found, Item, Paper, Reading, Study, Verdict
from benchmarks.reproduce.results import FOLDER, fits

Runs = Mapping[str, Mapping[str, Any]]
"""Seeds, seconds and machine, by study."""

INTRODUCTION = """\
This library is a reference implementation of five published systems. These pages say, for every numbered item and every
headline of the five papers, what was reproduced, by which command, how far it is from the printed value, and why. One
command a paper: `python -m benchmarks.reproduce sgbdt --full` measures everything and writes its page; `--quick` runs
everything on few rows, to see that it works, and stores nothing. Verdicts are computed from stored values by the rules
in `benchmarks/reproduce/judging.py`; only the sentence behind a verdict is written by hand."""
WRITTEN = """\
Written by `python -m benchmarks.reproduce {key} --full`, from stored values; `--only` names one study. A mean has the
standard deviation over fits in brackets. Seeds / fits: a study's seeds, and how many fits a mean is over, which is more
where a seed has five folds; "-" is a run that another page of measurements keeps, and "none" has no chance in it."""
COLUMNS = ("Item", "Printed", "Ours, sound", "As printed", "Command", "Seeds / fits", "Verdict")


def readings(paper: Paper, found: Mapping[str, Found]) -> list[tuple[Item, Reading]]:
    """Each item and what the stored values say of it, in the order of a page."""
    return [(item, item.reading(found)) for kind in KINDS for item in paper.items if item.kind == kind]


def cell(text: str) -> str:
    """Text inside a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def seeds_and_fits(study: Study | None, found: Mapping[str, Found], runs: Runs) -> str:
    """What a mean rests on: "5 / 25"."""
    if study is None or study.name not in found:
        return ""
    if study.seeds == 0:
        return "none"
    counted = fits(found[study.name])
    most = f"{min(counted)} to {max(counted)}" if len(counted) > 1 else str(*counted) or "1"
    return f"{runs.get(study.name, {}).get('seeds', '-')} / {most}"


def row(item: Item, reading: Reading, weight: str) -> str:
    """One line of a table; `weight` is what its means rest on."""
    links = "".join(f" ({{ref}}`errata <{anchor}>`)" for anchor in item.errata)
    cells = (
        f"**{item.number}** {item.says}",
        item.printed,
        reading.ours,
        reading.as_printed,
        "" if item.study is None else f"`--only {item.study}`",
        weight,
        f"**{reading.verdict}** {item.sentence}{links}",
    )
    return "| " + " | ".join(map(cell, cells)) + " |"


def table(rows: Iterable[str]) -> str:
    """A table of items."""
    return "\n".join([f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS), *rows])


def counts(read: Sequence[tuple[Item, Reading]]) -> Counter[Verdict]:
    """How often each verdict is given."""
    return Counter(reading.verdict for _, reading in read)


def in_words(seconds: float) -> str:
    """A duration."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def picture(paper: Paper, study: str) -> str:
    """A study's picture, below the table of figures."""
    shown = ", ".join(item.number for item in paper.items if item.study == study)
    source = f"figures/{paper.key}-{study}.svg"
    return f"```{{figure}} {source}\n:alt: {shown}, drawn from the stored values.\n\n{shown}.\n```"


def page(paper: Paper, found: Mapping[str, Found], runs: Runs) -> str:
    """A paper's page, in Markdown."""
    read = readings(paper, found)
    totals = counts(read)
    said = ", ".join(f"{totals[verdict]} {verdict}" for verdict in VERDICTS if totals[verdict])
    parts = [
        f"# {paper.title}",
        f"{paper.source}. {len(read)} items: {said}.",
        paper.about,
        WRITTEN.format(key=paper.key),
    ]
    studies: Mapping[str | None, Study] = {study.name: study for study in paper.studies}
    for kind in KINDS:
        rows = [
            row(item, reading, seeds_and_fits(studies.get(item.study), found, runs))
            for item, reading in read
            if item.kind == kind
        ]
        if rows:
            parts += [f"## {PLURALS[kind]}", table(rows)]
        if kind == "Figure":
            drawn = [study.name for study in paper.studies if study.draw is not None and study.name in found]
            parts += [picture(paper, name) for name in drawn]
    times = [f"| `{name}` | {run['seeds'] or 'none'} | {in_words(run['seconds'])} |" for name, run in runs.items()]
    machines = sorted({run["machine"] for run in runs.values()})
    parts += [
        "## Runs",
        "\n".join(["| Study | Seeds | Time |", "|---|---|---|", *times]),
        f"Measured on {'; '.join(machines)}." if machines else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def index(papers: Sequence[tuple[Paper, Mapping[str, Found], Runs]]) -> str:
    """The summary of all papers, in Markdown."""
    lines = [f"| Paper | Items | {' | '.join(VERDICTS)} | Time of `--full` |", "|" + "---|" * (len(VERDICTS) + 3)]
    for paper, found, runs in papers:
        read = readings(paper, found)
        totals = counts(read)
        took = in_words(sum(run["seconds"] for run in runs.values()))
        numbers = " | ".join(str(totals[verdict]) for verdict in VERDICTS)
        lines.append(f"| {{doc}}`{paper.key}` | {len(read)} | {numbers} | {took} |")
    meanings = "\n".join(f"* **{verdict}**: {meaning}." for verdict, meaning in VERDICTS.items())
    cards = "\n".join(f"{paper.key} | {paper.source}" for paper, _, _ in papers)
    parts = [
        "# Five papers, every figure",
        INTRODUCTION,
        meanings,
        "\n".join(lines),
        "{doc}`../errata` has the proof and the audit for each privacy error.",
        f"```{{cards}}\n:caption: Papers\n\n{cards}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def write(papers: Sequence[tuple[Paper, Mapping[str, Found], Runs]]) -> None:
    """Write each paper's page, and the summary, into docs/reproduction."""
    for paper, found, runs in papers:
        (FOLDER / f"{paper.key}.md").write_text(page(paper, found, runs), encoding="utf-8")
    (FOLDER / "index.md").write_text(index(papers), encoding="utf-8")
