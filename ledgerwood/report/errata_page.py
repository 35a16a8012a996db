"""docs/errata.md: the text of docs/errata/, a table and a finding for each specimen, and all of them at the end.

The text is in one file a paper. A line `{{ name }}` stands for the specimen of that name: its claimed and exact figures
are computed, what its auditor measured is read from the JSON beside the page.
"""

import re
from collections.abc import Mapping, Sequence

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata import PAPERS, SPECIMENS, Finding, Specimen, find

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
    """Who catches it, and what was measured."""
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
