"""Released trees as an ONNX model: one tree ensemble, and the arithmetic from its sums to predictions."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerwood import _extras
from ledgerwood.reading.covers import node_covers
from ledgerwood.reading.exports.graph_parts import GraphParts, write_outputs
from ledgerwood.reading.exports.nodes import NodeTest, NodeTree, node_trees
from ledgerwood.reading.exports.scores import Outputs, TreeScores, exported_model
from ledgerwood.reading.exports.statements import export_notes
from ledgerwood.reading.models import TreeModel

if TYPE_CHECKING:
    import onnx

_OPSET, _ML_OPSET, _IR = 18, 5, 10
"""Those of ONNX 1.16; the tree ensemble is of that release."""
_LESS, _EQUAL, _MEMBER = 1, 4, 6
"""Modes of a node's test."""
_SUM = 1
"""Of the values of the leaves."""


def to_onnx(model: Any) -> "onnx.ModelProto":
    """Export released trees as an ONNX model, which predicts what the model predicts.

    Its one input is "X", float32 (n_rows, n_features), by `encoded_rows`; numeric columns may also be given as float32
    numbers as they are, with NaN for what is missing. Its outputs:

    * of a regressor "variable", float32 (n_rows, 1): `predict(X)`, in the label's unit and inside the declared range;
    * of a classifier "label" (n_rows,): `predict(X)`, of the classes' type; "probabilities", float32 (n_rows, K):
      `predict_proba(X)`; and "scores", float32 (n_rows, 1) of two classes, else (n_rows, K): `decision_function(X)`,
      or, of trees whose leaves hold labels, "probabilities" once more;
    * of a `TreeModel` of classes "scores" alone.

    Sums and probabilities are computed in float64 and rounded once. Operators are those of ONNX 1.16 (opset 18,
    ai.onnx.ml 5). The model's metadata hold the privacy statement and the encoding of the features.

    Args:
        model: a fitted estimator that releases trees, or a `TreeModel`.

    Raises:
        InvalidParameter: a model without trees, a pipeline, or an estimator with its own way to predictions.
        ModuleNotFoundError: onnx is not installed.
    """
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ModuleNotFoundError as missing:
        raise _extras.needed("to_onnx", missing) from missing
    model = exported_model(model)
    read, outputs = TreeModel.of(model), Outputs.of(model)
    scores, graph = TreeScores.of(read), GraphParts(onnx)
    scores.require_float32()
    rows = graph.to_double("X")
    summed = graph.node("Add", _ensemble(graph, read, scores, rows), graph.constant(scores.start[np.newaxis]))
    write_outputs(graph, read, outputs, summed, scores.groups)
    width = [None, len(read.features)]
    made = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            "ledgerwood",
            [onnx.helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, width)],
            graph.outputs,
            graph.constants,
        ),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET), onnx.helper.make_opsetid("ai.onnx.ml", _ML_OPSET)],
        ir_version=_IR,
        producer_name="ledgerwood",
    )
    onnx.helper.set_model_props(made, export_notes(model, read))
    return made


def _ensemble(graph: GraphParts, read: TreeModel, scores: TreeScores, rows: str) -> str:
    """Name of the sums of the trees, float64 (n_rows, n_groups).

    Args:
        graph: to which they are added.
        read: the model.
        scores: which tree adds what to which score.
        rows: name of the encoded rows, float64.
    """
    nodes = node_trees(read, node_covers(read).shares)
    built = _Nodes()
    for part in scores.trees:
        built.add(nodes[part.tree], part.values, part.group)
    if not scores.trees:
        built.leaf(0.0, 0)
    return graph.node(
        "TreeEnsemble",
        rows,
        domain="ai.onnx.ml",
        n_targets=scores.groups,
        aggregate_function=_SUM,
        tree_roots=built.roots,
        nodes_featureids=built.features,
        nodes_modes=graph.tensor(np.array(built.modes, dtype=np.uint8), "modes"),
        nodes_splits=graph.tensor(np.array(built.splits), "splits"),
        nodes_missing_value_tracks_true=built.missing,
        nodes_truenodeids=built.sides[0],
        nodes_trueleafs=built.ends[0],
        nodes_falsenodeids=built.sides[1],
        nodes_falseleafs=built.ends[1],
        leaf_targetids=built.targets,
        leaf_weights=graph.tensor(np.array(built.weights), "weights"),
        **({"membership_values": graph.tensor(np.array(built.members), "members")} if built.members else {}),
    )


class _Nodes:
    """The attributes of ONNX's tree ensemble, node after node; the leaves are numbered by themselves."""

    __slots__ = (
        "ends", "features", "members", "missing", "modes", "roots", "sides", "splits", "targets", "weights",
    )  # fmt: skip

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.features: list[int] = []
        self.modes: list[int] = []
        self.splits: list[float] = []
        self.missing: list[int] = []
        self.members: list[float] = []
        self.sides: tuple[list[int], list[int]] = ([], [])
        self.ends: tuple[list[int], list[int]] = ([], [])
        self.targets: list[int] = []
        self.weights: list[float] = []

    def add(self, tree: NodeTree, values: Any, group: int) -> None:
        """One tree's part in one score."""
        if len(tree) == 1:
            self.leaf(float(values[tree.leaves[0]]), group)
            return
        self.roots.append(len(self.modes))
        inner = np.cumsum(tree.leaves < 0) - 1 + len(self.modes)  # the numbers of this tree's nodes that are no leaves
        for node, test in enumerate(tree.tests):
            if test is not None:
                self._test(test)
                sides = (tree.left[node], tree.right[node])
                # A test of membership sends those that it lists to the right.
                for place, child in enumerate(sides[::-1] if test.codes else sides):
                    ends = bool(tree.leaves[child] >= 0)
                    self.ends[place].append(int(ends))
                    self.sides[place].append(len(self.weights) if ends else int(inner[child]))
                    if ends:
                        self._weight(float(values[tree.leaves[child]]), group)

    def leaf(self, value: float, group: int) -> None:
        """A tree that is one leaf: a test both of whose sides are that leaf."""
        self.roots.append(len(self.modes))
        self._test(NodeTest(feature=0, below=0.0, codes=(), missing=True))
        for place in range(2):
            self.ends[place].append(1)
            self.sides[place].append(len(self.weights))
        self._weight(value, group)

    def _test(self, test: NodeTest) -> None:
        self.features.append(test.feature)
        # Of a threshold those below it are the true side; of categories those that are listed.
        self.missing.append(int(test.missing if not test.codes else not test.missing))
        if len(test.codes) <= 1:
            self.modes.append(_EQUAL if test.codes else _LESS)
            self.splits.append(float(test.codes[0]) if test.codes else test.below)
        else:
            self.modes.append(_MEMBER)
            self.splits.append(0.0)
            self.members += [*map(float, test.codes), float("nan")]

    def _weight(self, value: float, group: int) -> None:
        self.targets.append(group)
        self.weights.append(value)
