"""The pictures in docs/reproduction: matplotlib's SVG, with a title and a description, and no address in it."""

import io
import re
from html import escape
from pathlib import Path

from benchmarks.reproduce.items import Found, Paper
from benchmarks.reproduce.results import FOLDER


def path_of(paper: Paper, name: str) -> Path:
    """The file of a study's picture."""
    return FOLDER / "figures" / f"{paper.key}-{name}.svg"


def standalone(svg: str, title: str, description: str) -> str:
    """The picture with words for those who do not see it, and without metadata, document type and link namespace."""
    for pattern in (r"<!DOCTYPE[^>]*>\s*", r"<metadata>.*?</metadata>\s*", r"\sxmlns:xlink=\"[^\"]*\""):
        svg = re.sub(pattern, "", svg, flags=re.DOTALL)
    words = f"<title>{escape(title)}</title>\n <desc>{escape(description)}</desc>"
    svg = re.sub(r"(<svg\b[^>]*>)", lambda found: f"{found[1]}\n {words}", svg.replace("xlink:href", "href"), count=1)
    return re.sub(r"[ \t]+\n", "\n", svg)


def draw(paper: Paper, name: str, found: Found) -> None:
    """Draw one study's picture from its values, where it has one."""
    import matplotlib as mpl  # only where a picture is drawn

    (study,) = (study for study in paper.studies if study.name == name)
    if study.draw is None:
        return
    shown = [item for item in paper.items if item.study == name]
    file = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": f"{paper.key}-{name}", "svg.fonttype": "path"}):
        study.draw(found).savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight")
    path = path_of(paper, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    title = f"{paper.title}: {', '.join(item.number for item in shown)}"
    path.write_text(standalone(file.getvalue(), title, " ".join(item.says for item in shown)), encoding="utf-8")
