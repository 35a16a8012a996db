"""Text: a reader who follows the printed words comes to the model's own prediction."""

import re

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading import TreeModel, export_text, node_covers, released_rules
from ledgerwood.reading.conditions import cell_names, shown_name, shown_number, words
from tests.reading.models import BINS, CELLS, FEATURES, NUMBER, THREE, TWO, holds, random_cells, random_model, row_of


def followed(lines, row):
    """The numbers of the leaf to which the printed tree leads a row."""
    depth = 0
    for line in lines:
        inside, _, said = line.rpartition("|--- ")
        if len(inside) // 4 != depth:
            continue
        said = re.sub(r" \[[^\[]*%\]$", "", said)  # the share of the rows
        if re.match(r"[+-]|'", said):
            return said
        if holds(said, row):
            depth += 1
    raise AssertionError("no leaf")


def printed_trees(text):
    return [part.splitlines()[1:] for part in text.split("\n\n")[1:] if part.startswith("tree ")]


@pytest.mark.parametrize("seed", range(3))
def test_following_the_words_gives_the_score(seed):
    model = random_model(NUMBER, seed=seed, depth=4)
    text = export_text(model)
    assert text.startswith("rings: 18.5, and what the leaves of 3 trees add, in the unit of rings; ")
    assert text.splitlines()[1] == "shares of rows: released weights"
    trees, cells = printed_trees(text), random_cells(100, seed)
    expected = 1.0 + (model.ensemble.scores(cells) + 1.0) * 14.0
    found = [
        18.5 + sum(float(followed(lines, row_of(row)).split(" ± ")[0]) for lines in trees) for row in cells.T.tolist()
    ]
    np.testing.assert_allclose(found, expected, atol=3 * 0.5e-3)


def test_of_shared_classes_each_leaf_says_all_scores():
    model = random_model(THREE, classes=3)
    text = export_text(model)
    assert "kind: scores of 'middle' " in text.splitlines()[0]
    for row in random_cells(30).T:
        expected = model.ensemble.start + sum(
            tree.values[tree.structure.route(row[:, np.newaxis])[0]] for tree in model.trees
        )
        found = model.start.copy()
        for lines in printed_trees(text):
            found += [float(each.split()[1]) for each in followed(lines, row_of(row.tolist())).split(", ")]
        np.testing.assert_allclose(found, expected, atol=3e-3)


@pytest.mark.parametrize("schema", [TWO, THREE])
def test_rules_give_the_label_and_one_rule_holds_for_each_row(schema):
    model = random_model(schema, trees=1, depth=4, labels=True, seed=3, weights=False)
    rules, (tree,) = released_rules(model), model.trees
    assert sum(rule.share for rule in rules) == pytest.approx(1.0)
    cells = random_cells(200)
    for row, leaf in zip(cells.T.tolist(), tree.structure.route(cells).tolist(), strict=True):
        (rule,) = [rule for rule in rules if all(holds(each, row_of(row)) for each in rule.conditions)]
        assert rule.label == model.classes[int(tree.values[leaf])]
    text = export_text(model)
    assert text.splitlines()[0] == f"kind: {len(rules)} rules; shares of rows: public volumes"
    assert text.splitlines()[2:] == [str(rule) for rule in rules]


def test_rules_with_one_label_are_one():
    tree = Tree(structure=random_model(TWO).trees[0].structure, values=np.zeros(8))
    model = TreeModel(ensemble=Ensemble(initial_score=0.0, trees=(tree,)), schema=TWO, max_bins=BINS, labels=True)
    assert export_text(model).splitlines()[2:] == ["always: 'old' (100 %)"]


def test_trees_of_several_classes_name_theirs():
    text = export_text(random_model(THREE, trees=6, depth=1))
    titles = [line for line in text.splitlines() if line.startswith("tree")]
    assert titles == [f"tree {place}, for {['middle', 'old', 'young'][place // 2]!r}" for place in range(6)]


def test_depth_and_trees_are_as_asked():
    model = random_model(NUMBER, trees=12)
    text = export_text(model)
    assert text.endswith("and 2 trees more: trees=range(12) writes all of them\n")
    assert export_text(model, trees=range(12)).count("\ntree ") == 12
    short = export_text(model, trees=[3], max_depth=1)
    assert "leaves, in the mean" in short
    assert max(line.count("|") for line in short.splitlines()) == 2
    with pytest.raises(InvalidParameter, match="at most 11"):
        export_text(model, trees=[12])
    with pytest.raises(InvalidParameter, match="no labels"):
        released_rules(model)


def test_all_marks_of_a_feature_are_said_in_words_that_hold_for_no_other():
    generator = np.random.default_rng(0)
    for feature, cells in zip(FEATURES, CELLS, strict=True):
        for _ in range(40):
            mark = generator.random(cells) < 0.5
            if not mark.any() or mark.all():
                continue
            said = words(feature, mark, BINS)
            for cell in range(cells):
                row = row_of([cell if each is feature else 0 for each in FEATURES])
                assert holds(said, row) == mark[cell], said


def test_names_of_cells_and_numbers():
    assert cell_names(FEATURES[0], BINS) == ("[0, 0.25)", "[0.25, 0.5)", "[0.5, 0.75)", "[0.75, 1)", "missing")
    assert cell_names(FEATURES[1], BINS) == ("'M'", "'F'", "'I'", "other")
    assert len(cell_names(FEATURES[3], BINS)) == CELLS[3]
    assert shown_number(1234567.0, 1.0) == "1234567"
    assert shown_number(0.123456789, 0.01) == "0.1235"
    assert shown_name("a b") == "a b"
    assert shown_name("a\nb") == "'a\\nb'"


def test_hostile_names_stay_on_their_line():
    feature = lw.Numeric("x\n|--- +5", 0.0, 1.0)
    schema = lw.Schema(features=(feature, lw.Categorical("c", ("\u202eb", "a"))), target=lw.Numeric("y\r", 0, 1))
    structure = TreeStructure.root().deeper(SplitTests.every(schema.cells(2)).taken(np.array([0])))
    structure = structure.deeper(SplitTests.every(schema.cells(2)).taken(np.array([1, 2])))
    model = TreeModel(
        ensemble=Ensemble(initial_score=0.0, trees=(Tree(structure=structure, values=np.arange(4.0)),)),
        schema=schema,
        max_bins=2,
    )
    text = export_text(model)
    assert all(line.isprintable() for line in text.splitlines())
    assert len(text.splitlines()) == 4 + 10
    assert r"'x\n|--- +5' < 0.5" in text


def test_covers_of_text_are_the_models():
    model = random_model(NUMBER, trees=1, seed=1)
    sides = [line for line in export_text(model).splitlines() if line.startswith("|--- ")]
    shares = [float(re.findall(r"\[([\d.]+) %\]", line)[0]) for line in sides]
    (covers,) = node_covers(model).shares
    np.testing.assert_allclose(shares, 100.0 * covers[1:3], rtol=5e-3)
