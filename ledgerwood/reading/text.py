"""Released trees as text: tests in the schema's words, leaves in the label's unit; one tree of labels as rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator import Numeric
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading.cards.contents import privacy_line
from ledgerwood.reading.conditions import Mark, shown_name, shown_number, words
from ledgerwood.reading.covers import CoverSource, node_covers
from ledgerwood.reading.models import TreeModel
from ledgerwood.reading.nodes import ReadNode, read_tree
from ledgerwood.trainers.base.trainer import AbstractTrainer

FIRST_TREES = 10
"""Trees that are printed where none are named."""


def export_text(model: Any, *, max_depth: int | None = None, trees: Sequence[int] | None = None) -> str:
    """The trees of a model in words: names, thresholds and categories of the schema, leaves in the label's unit.

    A tree of labels (PrivaTree) is written as rules, one for each leaf that a row can reach. Of a sum of trees each
    test is followed by what is below it on either side, and each leaf by what it adds, with the standard deviation of
    its known noise. A share is the share of the rows by `node_covers`; the first lines say where it comes from.
    Tests that every row passes the same way are left out. The text of an estimator begins with its privacy statement.

    Args:
        model: a fitted estimator that releases trees, or a `TreeModel`.
        max_depth: levels that are written of each tree; below, a line has the mean of the leaves. None: all.
        trees: places of trees in the ensemble, from 0; None: the first ten.

    Raises:
        InvalidParameter: a model without trees, a place where there is no tree, or a depth below 1.
    """
    read = TreeModel.of(model)
    most = None if max_depth is None else _validate.count("max_depth", max_depth, "levels")
    covers = node_covers(read)
    stated = f"{privacy_line(model.privacy_)}\n" if isinstance(model, AbstractTrainer) else ""
    if read.labels and most is None and trees is None:
        return stated + _written_rules(read, released_rules(read), covers.source)
    places = tree_places(read, trees)
    lines = [_start(read), f"shares of rows: {covers.source}"]
    for place in places:
        lines += ["", _title(read, place)]
        lines += _lines(read, read_tree(read, place, covers), read.output_of(place), most, "")
    rest = len(read.trees) - len(places)
    if trees is None and rest > 0:
        lines += ["", f"and {rest} trees more: trees=range({len(read.trees)}) writes all of them"]
    return stated + "\n".join(lines) + "\n"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRule:
    """One leaf of a tree of labels, or a node all of whose leaves have the same label.

    Args:
        conditions: all of which hold, at most one for each feature; none where there is one leaf only.
        label: the released class.
        share: of the rows, by `node_covers`.
    """

    conditions: tuple[str, ...]
    label: Any
    share: float

    def __str__(self) -> str:
        found = " and ".join(f"({each})" if " or " in each else each for each in self.conditions)
        return f"{f'if {found}' if found else 'always'}: {self.label!r} ({shown_share(self.share)})"


def released_rules(model: Any) -> tuple[LabelRule, ...]:
    """The rules of the one tree of a model whose leaves have labels (PrivaTree), from left to right.

    Args:
        model: a fitted `PrivaTreeClassifier`, or a `TreeModel` of labels.

    Raises:
        InvalidParameter: a model whose leaves have scores.
    """
    read = TreeModel.of(model)
    if not read.labels:
        raise InvalidParameter(
            f"a sum of {len(read.trees)} trees has scores in its leaves and no labels: export_text(model) writes it"
        )
    found: list[LabelRule] = []

    def walk(node: ReadNode, marks: dict[int, Mark]) -> None:
        if node.mark is None or node.left is None or node.right is None or node.values.max() >= 1.0 - 1e-9:
            conditions = tuple(words(read.features[f], marks[f], read.max_bins) for f in sorted(marks))
            label = read.classes[int(np.argmax(node.values))]
            found.append(LabelRule(conditions=conditions, label=label, share=node.share))
            return
        before = marks.get(node.feature, np.ones(len(node.mark), dtype=np.bool_))
        walk(node.left, {**marks, node.feature: before & node.mark})
        walk(node.right, {**marks, node.feature: before & ~node.mark})

    walk(read_tree(read, 0), {})
    return tuple(found)


def tree_places(model: TreeModel, trees: Sequence[int] | None, first: int = FIRST_TREES) -> tuple[int, ...]:
    """The places of the trees that are asked for; the first ones where None.

    Raises:
        InvalidParameter: a place where there is no tree.
    """
    have = len(model.trees)
    if trees is None:
        return tuple(range(min(first, have)))
    given = _validate.items("trees", trees, "places of trees")
    places = tuple(_validate.count("trees", place, "places of trees", minimum=0) for place in given)
    for place in places:
        if place >= have:
            raise _validate.fail("trees", place, f"at most {have - 1}: the model has {have} trees", "places of trees")
    return places


def shown_share(share: float) -> str:
    """A share in percent."""
    percent = 100.0 * share
    return f"{percent:.3g} %" if percent >= 0.1 or percent == 0.0 else "< 0.1 %"


def shown_output(model: TreeModel, value: float) -> str:
    """A value that a leaf adds, with its sign."""
    target = model.target
    step = (target.high - target.low) / 100.0 if isinstance(target, Numeric) else 0.01
    text = shown_number(value, step)
    return text if text.startswith("-") else f"+{text}"


def leaf_words(
    model: TreeModel, values: NDArray[np.float64], noise: NDArray[np.float64] | None, output: int | None
) -> str:
    """What a leaf adds, or its label, in words.

    Args:
        model: whose leaf it is.
        values: of its outputs, (n_outputs,).
        noise: of them, or None.
        output: the only one that counts, or None.
    """
    if model.labels:
        return f"{model.classes[int(np.argmax(values))]!r}"

    def one(place: int) -> str:
        known = "" if noise is None else f" \N{PLUS-MINUS SIGN} {shown_output(model, float(noise[place]))[1:]}"
        return f"{shown_output(model, float(values[place]))}{known}"

    if output is not None:
        return one(output)
    return ", ".join(f"{name} {one(place)}" for place, name in enumerate(model.outputs))


def _start(model: TreeModel) -> str:
    target, trees = model.target, f"{len(model.trees)} trees"
    name = shown_name(target.name)
    if model.labels:
        return f"{name}: one tree"
    if isinstance(target, Numeric):
        start = shown_number(float(model.start[0]), (target.high - target.low) / 1000.0)
        return (
            f"{name}: {start}, and what the leaves of {trees} add, in the unit of {name}; "
            f"the sum is clamped to [{target.low:g}, {target.high:g}]"
        )
    starts = ", ".join(
        f"{each} {shown_output(model, float(at))}" for each, at in zip(model.outputs, model.start, strict=True)
    )
    return f"{name}: scores of {starts} to begin with, and what the leaves of {trees} add"


def _title(model: TreeModel, place: int) -> str:
    output = model.output_of(place)
    of_class = f", for {model.outputs[output]}" if output is not None and len(model.outputs) > 1 else ""
    return f"tree {place}{of_class}"


def _lines(model: TreeModel, node: ReadNode, output: int | None, most: int | None, before: str) -> list[str]:
    pad = f"{before}|--- "
    if node.mark is None or node.left is None or node.right is None:
        return [f"{pad}{leaf_words(model, node.values, node.noise, output)}"]
    if most == 0:
        return [f"{pad}{node.leaves} leaves, in the mean {leaf_words(model, node.values, None, output)}"]
    found = []
    for mark, below in ((node.mark, node.left), (~node.mark, node.right)):
        found.append(f"{pad}{words(model.features[node.feature], mark, model.max_bins)} [{shown_share(below.share)}]")
        found += _lines(model, below, output, None if most is None else most - 1, f"{before}|   ")
    return found


def _written_rules(model: TreeModel, rules: Sequence[LabelRule], source: CoverSource) -> str:
    name = shown_name(model.target.name)
    return "\n".join([f"{name}: {len(rules)} rules; shares of rows: {source}", "", *map(str, rules)]) + "\n"
