"""Drawn trees: every node is there, hostile names are escaped, and a whole model is explained from its trees."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading import TreeModel, draw_tree, explain, importances, partial_dependence
from ledgerwood.reading.nodes import read_tree
from tests.reading.models import MODELS, NUMBER, cells_of, expected_output, random_model

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", MODELS)
def test_every_node_that_a_row_can_reach_has_a_box(name):
    model = MODELS[name]
    drawing = draw_tree(model, max_depth=None)
    root = read_tree(model, 0)
    assert len(drawing.boxes) == 2 * root.leaves - 1
    assert drawing.columns == root.leaves
    assert sum(box.share for box in drawing.boxes if box.leaf) == pytest.approx(1.0)
    for place, box in enumerate(drawing.boxes):
        if not box.leaf:
            below = [other for other in drawing.boxes if other.parent == place]
            assert [other.side for other in below] == ["yes", "no"]
            assert below[0].across < box.across < below[1].across
    picture = ET.fromstring(drawing.svg())
    assert len(picture.findall(f"{SVG}rect")) == len(drawing.boxes)
    assert len(picture.findall(f"{SVG}line")) == len(drawing.boxes) - 1
    assert picture.find(f"{SVG}title").text == drawing.title
    assert picture.find(f"{SVG}desc").text == str(drawing)


def test_deeper_levels_are_one_box_and_a_picture_is_saved(tmp_path):
    drawing = draw_tree(random_model(NUMBER, depth=5, trees=2), tree=1, max_depth=2)
    assert drawing.levels <= 3
    assert any("leaves, mean" in line for box in drawing.boxes for line in box.lines)
    drawing.save(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8") == drawing._repr_svg_()
    with pytest.raises(InvalidParameter, match="at most 1"):
        draw_tree(random_model(NUMBER, trees=2), tree=2)


def test_hostile_names_are_escaped():
    hostile = '"><script>alert(1)</script>&\x00\u202e'
    schema = lw.Schema(
        features=(lw.Numeric(hostile, 0.0, 1.0), lw.Categorical("c", (hostile.strip("\0"), "b"))),
        target=lw.Categorical(hostile, ("</svg>", "x")),
    )
    tests = SplitTests.every(schema.cells(2))
    structure = TreeStructure.root().deeper(tests.taken(np.array([0]))).deeper(tests.taken(np.array([1, 2])))
    tree = Tree(structure=structure, values=np.array([0.0, 1.0, 0.0, 1.0]))
    for labels in (False, True):
        ensemble = Ensemble(initial_score=0.0, trees=(tree,))
        model = TreeModel(ensemble=ensemble, schema=schema, max_bins=2, labels=labels)
        text = draw_tree(model).svg()
        assert "<script" not in text
        assert "\u202e" not in text
        assert {each.tag for each in ET.fromstring(text).iter()} <= {
            f"{SVG}{tag}" for tag in ("svg", "title", "desc", "style", "rect", "line", "text")
        }


def test_an_explanation_is_made_of_the_readers():
    model = MODELS["number"]
    found = explain(model, top=3)
    names = [each.name for each in importances(model).features[:3]]
    assert [effect.axes[0].name for effect in found.effects] == names
    np.testing.assert_array_equal(found.effects[0].values, partial_dependence(model, names[0]).values)
    assert found.pair is not None
    assert set(found.pair.names) <= set(names)
    text = str(found)
    assert f"strongest pair: {found.pair.names[0]} and {found.pair.names[1]}" in text
    assert explain(random_model(NUMBER, trees=1, depth=1, seed=3), top=1).pair is None
    with pytest.raises(InvalidParameter, match="top"):
        explain(model, top=0)


def test_an_interaction_is_what_is_left_without_the_means():
    model = MODELS["shared classes"]
    pair = explain(model, top=2).pair
    assert pair is not None
    one, other = (model.names.index(name) for name in pair.names)
    together, points = pair.together, [cells_of(axis, model.names.index(axis.name)) for axis in pair.together.axes]
    a, b = (np.array(axis.shares) for axis in together.axes)
    every = np.array([[expected_output(model, {one: i, other: j}) for j in points[1]] for i in points[0]])
    left = every - np.einsum("ijo,j->io", every, b)[:, np.newaxis] - np.einsum("ijo,i->jo", every, a)
    left += np.einsum("ijo,i,j->o", every, a, b)
    strengths = np.sqrt(np.einsum("ijo,i,j->o", left**2, a, b))
    assert pair.strength == pytest.approx(strengths.max())
    assert pair.output == int(np.argmax(strengths))
    for place, axis in enumerate(pair.together.axes):
        means = np.tensordot(axis.shares, pair.interaction, axes=(0, place))
        np.testing.assert_allclose(means, 0.0, atol=1e-12)
