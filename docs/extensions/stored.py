"""The role `stored`: a figure of a stored benchmark, read when the page is built, so that no text can fall behind it.

{stored}`dpboost > figure2 > a9a > paper > epsilon=8 > accuracy` is the mean in docs/benchmarks/dpboost.json of that
study and data set, of the row of that name, of the cell with that epsilon (or `at=`, or `length=` of a learning curve),
by that measure: three decimals, two from 10 on. A figure that is not there fails the build.

{stored}`shuffling > rows > multiplier=1, steps=1000, epochs=1 > poisson` is that field of the one row with those
values, where a store is a list of rows without measures.
"""

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxRole

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def figure(path: str, folder: Path = BENCHMARKS) -> float:
    """The stored mean that a path names.

    Raises:
        LookupError: it names none; the message says from which part on.
    """
    store, *parts = path.split(" > ")
    if len(parts) not in (3, 5):
        raise LookupError(
            f"{path!r} must be store > study > data set > row > cell > measure, or store > rows > values > field"
        )
    file = folder / f"{store}.json"
    if not file.is_file():
        raise LookupError(f"{path!r}: there is no {file.name}")
    held = json.loads(file.read_text())
    if len(parts) == 3:
        return _field(held, parts, path)
    study, data, name, cell, measure = parts
    for part in (study, data):
        if part not in held:
            raise LookupError(f"{path!r}: no {part!r} among {sorted(held)}")
        held = held[part]
    rows = {row["name"]: row for row in held["rows"]}
    if name not in rows:
        raise LookupError(f"{path!r}: no row {name!r} among {sorted(rows)}")
    if measure not in held["measures"]:
        raise LookupError(f"{path!r}: no measure {measure!r} among {held['measures']}")
    return float(_cell(held, rows[name], cell, path)["mean"][held["measures"].index(measure)])


def _cell(held: dict[str, Any], row: dict[str, Any], asked: str, path: str) -> dict[str, Any]:
    kind, _, value = asked.partition("=")
    if kind == "length" and float(value) in held.get("lengths", []):
        return dict(row["cells"][held["lengths"].index(float(value))])
    for cell in row["cells"]:
        if kind in cell and cell[kind] == float(value):
            return dict(cell)
    raise LookupError(f"{path!r}: no cell {asked!r}")


def _field(held: dict[str, Any], parts: list[str], path: str) -> float:
    rows, asked, field = parts
    wanted = {name.strip(): float(value) for name, _, value in (each.partition("=") for each in asked.split(","))}
    found = [row for row in held.get(rows, []) if all(row.get(name) == value for name, value in wanted.items())]
    if len(found) != 1 or field not in found[0]:
        raise LookupError(f"{path!r}: {len(found)} rows have these values, and one with {field!r} is needed")
    return float(found[0][field])


def shown(value: float) -> str:
    """Three decimals without a zero before the point; two from 10 on."""
    text = f"{value:.3f}" if abs(value) < 10.0 else f"{value:.2f}"
    return text.replace("0.", ".", 1) if abs(value) < 1.0 else text


class Stored(SphinxRole):
    """See the module."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The figure as text; an error of the build where there is none."""
        try:
            return [nodes.Text(shown(figure(self.text)))], []
        except LookupError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_role("stored", Stored())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
