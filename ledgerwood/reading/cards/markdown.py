"""A page as Markdown, in which no text that comes from outside can become markup."""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence

from ledgerwood.pages.html import HtmlTable, Page, Section
from ledgerwood.pages.svg import printable

_MARKUP = re.compile(r"[\\`*_\[\]|~$]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_LINK = re.compile(r"(?i)(https?|ftp|mailto|xmpp):|www\.")
"""What a Markdown reader makes a link of without being asked."""
_START = re.compile(r"^(#|[-+](?=[\s-]|$)|=|\d{1,9}[.)](?=\s|$))")
"""What is a heading, a list or a rule at the start of a line."""
_EMOJI = re.compile(r":(?=[\w+-]+\\?:)|:(?=\w*(?:\\_\w*)+:)")
_LANGUAGES = {"from ": "python", "import ": "python", "ledgerwood ": "bash", "@": "bibtex"}
"""Of code, by what it starts with."""
FrontMatter = Mapping[str, str | float | bool | Sequence[str]]


def markdown(page: Page, front: FrontMatter) -> str:
    """The page as a model card: YAML front matter, then Markdown.

    Figures are left out; pages that have some are written as HTML.

    Args:
        page: the content.
        front: of the front matter, in order: texts, numbers, or lists of texts.
    """
    parts = [
        "---\n" + "".join(f"{name}: {_yaml(value)}\n" for name, value in front.items()) + "---",
        f"# {escaped(page.title)}",
        f"> **{escaped(page.verdict)}.** {escaped(page.sentence)}",
        _facts(page.facts),
        *(_section(section) for section in page.sections),
        "---",
        escaped(page.footer),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str) -> str:
    """A text as one line of Markdown that shows it as it is: no markup, no HTML, no link, and no line of its own."""
    line = " ".join(printable(text).split())
    line = _MARKUP.sub(r"\\\g<0>", line)
    line = "".join(_ENTITIES.get(sign, sign) for sign in line)
    line = _LINK.sub(lambda found: found[0][:-1] + "\\" + found[0][-1], line)
    line = _EMOJI.sub(r"\\:", line)
    return _START.sub(lambda found: found[0][:-1] + "\\" + found[0][-1], line)


def _section(section: Section) -> str:
    parts = [
        f"{'#' * section.level} {escaped(section.title)}",
        *(escaped(text) for text in section.texts),
        *(_table(table) for table in section.tables),
        "\n".join(f"* {escaped(point)}" for point in section.points),
        _facts(section.facts),
        *(_code(text) for text in section.code),
    ]
    return "\n\n".join(part for part in parts if part)


def _facts(facts: tuple[tuple[str, str], ...]) -> str:
    return "\n".join(f"* **{escaped(name)}:** {escaped(value)}" for name, value in facts)


def _table(table: HtmlTable) -> str:
    rule = ["---:" if place in table.numbers else "---" for place in range(len(table.header))]
    rows = [[escaped(cell) or " " for cell in row] for row in (table.header, *table.rows)]
    lines = [rows[0], rule, *rows[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(text: str) -> str:
    body = printable(textwrap.dedent(text).strip("\n"))
    # The fence is longer than any run of backticks inside.
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", body)), default=0))
    language = next((word for start, word in _LANGUAGES.items() if body.startswith(start)), "")
    return f"{fence}{language}\n{body}\n{fence}"


def _yaml(value: str | float | bool | Sequence[str]) -> str:
    """A value in YAML: texts in double quotes, as JSON writes them, which YAML reads alike."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # Line breaks that JSON leaves as they are end a line in YAML.
            return json.dumps(" ".join(printable(value).split()), ensure_ascii=False)
        case float() if value in (float("inf"), -float("inf")):
            return ".inf" if value > 0 else "-.inf"
        case float() | int():
            return _number(value)
        case _:
            return "[" + ", ".join(_yaml(each) for each in value) + "]"


def _number(value: float) -> str:
    text = repr(value)
    # YAML 1.1 reads 1e-06 as a text: its numbers with an exponent have a point.
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if e and "." not in mantissa else text
