"""Released trees as an XGBoost model, in its own JSON format: what the booster predicts is in `to_xgboost`."""

import itertools
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _extras, _validate
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading.covers import node_covers
from ledgerwood.reading.exports.nodes import NodeTree, node_trees
from ledgerwood.reading.exports.rows import feature_names, feature_types
from ledgerwood.reading.exports.scores import Outputs, ScoreTree, TreeScores, exported_model
from ledgerwood.reading.exports.statements import export_notes
from ledgerwood.reading.models import TreeModel

if TYPE_CHECKING:
    import xgboost

BoosterOutput = Literal["score", "probability"]
_FORMAT = [2, 0, 0]
"""The version of XGBoost whose format it is: 2.0 and every later one read it."""
_LEAST_COVER = 1e-30
"""Below it float32 numbers lose their digits, and a quotient of two of them its meaning."""
_ROOT = 2**31 - 1
"""What XGBoost calls the parent of a root."""


def to_xgboost(model: Any, *, output: BoosterOutput = "score") -> "xgboost.Booster":
    """Export released trees as an XGBoost booster, which predicts what the model predicts.

    `booster.predict(booster_rows(model, X))` is, within 1e-5 of its size or of the scores' range:

    * of a regressor the label in its unit, before it is clamped to the declared range: `model.predict(X)` is
      `np.clip(prediction, low, high)` with the target's bounds;
    * of a classifier with output="score" its `decision_function(X)`, (n_rows,) of two classes, whose second one is
      predicted above 0, or (n_rows, K) of more, whose largest is predicted;
    * with output="probability" `predict_proba(X)`, as XGBoost has it: of two classes the second one's, (n_rows,), of
      more (n_rows, K). XGBoost knows a sigmoid and a softmax, and nothing that undoes clipped gradients: many plans'
      probabilities are refused here, and are in `to_onnx`;
    * of `PrivaTreeClassifier`, with either, 1 for the label and 0 for other classes: of two the second one's,
      (n_rows,), of more `predict_proba(X)`.

    Numeric columns may also be given as float32 numbers as they are, with NaN for what is missing; categories must be
    encoded, see `encoded_rows`: a frame that is given to XGBoost as it is has its categories numbered in another order,
    without a warning. The covers (XGBoost's `sum_hessian`) are shares of rows by `node_covers`, from released
    or public values and never exact ones, so that `shap.TreeExplainer` needs no rows; they and the gains (the squared
    differences that a test makes, by those covers) have no other source.

    Args:
        model: a fitted estimator that releases trees, or a `TreeModel`.
        output: what a classifier's booster predicts.

    Raises:
        InvalidParameter: a model without trees, a pipeline, or probabilities that no objective of XGBoost expresses.
        ModuleNotFoundError: xgboost is not installed.
    """
    try:
        import xgboost
    except ModuleNotFoundError as missing:
        raise _extras.needed("to_xgboost", missing) from missing
    if output not in ("score", "probability"):
        raise _validate.fail("output", output, "'score' or 'probability'", "output")
    model = exported_model(model)
    read = TreeModel.of(model)
    record = booster_record(read, Outputs.of(model), output)
    record["learner"]["attributes"].update(export_notes(model, read))
    booster = xgboost.Booster()
    booster.load_model(bytearray(json.dumps(record).encode("utf-8")))
    return booster


def booster_record(read: TreeModel, outputs: Outputs, output: BoosterOutput) -> dict[str, Any]:
    """The model in XGBoost's JSON format, as plain values.

    Args:
        read: the trees.
        outputs: how the model's scores become predictions.
        output: as of `to_xgboost`.

    Raises:
        InvalidParameter: as `to_xgboost`.
    """
    scores = TreeScores.of(read)
    scores.require_float32()
    groups, objective = scores.groups, "reg:squarederror"
    shift = np.zeros(groups)
    if output == "probability" and outputs.link != "label":
        objective = "binary:logistic" if groups == 1 else "multi:softprob"
        shift = _shift(outputs, groups)
    covers = node_covers(read)
    nodes = node_trees(read, covers.shares)
    start = scores.start + shift
    identity = objective == "reg:squarederror" and groups == 1
    trees = _in_rounds(scores, start * (not identity))
    records = [
        _tree(nodes[part.tree], part.values, number, len(read.features))
        if part.tree >= 0
        else _leaf(float(part.values[0]), number, len(read.features))
        for number, part in enumerate(trees)
    ]
    several = groups > 1
    parameters = {"loss": {"scale_pos_weight": "1"}, "classes": {"num_class": str(groups)}}
    learner = {
        "attributes": {"ledgerwood_covers": covers.source, "ledgerwood_output": output},
        "feature_names": feature_names(read),
        "feature_types": feature_types(read),
        "gradient_booster": {
            "model": {
                "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(records))},
                "iteration_indptr": list(range(0, len(records) + 1, groups)),
                "tree_info": [part.group for part in trees],
                "trees": records,
            },
            "name": "gbtree",
        },
        "learner_model_param": {
            # Of a sigmoid 0.5 stands for a score of 0.
            "base_score": repr(float(np.float32(start[0]))) if identity else "5E-1" if groups == 1 else "0E0",
            "boost_from_average": "1",
            "num_class": str(groups) if objective == "multi:softprob" else "0",
            "num_feature": str(len(read.features)),
            "num_target": str(groups) if several and objective == "reg:squarederror" else "1",
        },
        "objective": (
            {"name": objective, "softmax_multiclass_param": parameters["classes"]}
            if objective == "multi:softprob"
            else {"name": objective, "reg_loss_param": parameters["loss"]}
        ),
    }
    return {"learner": learner, "version": _FORMAT}


def _shift(outputs: Outputs, groups: int) -> NDArray[np.float64]:
    """What is added to the scores, so that XGBoost's sigmoid or softmax of them gives the probabilities."""
    reasons = {
        "range": "a regressor predicts labels",
        "score": "of trees without their estimator no probabilities are known",
        "squared": "its probabilities are scores that are clamped to [0, 1]",
        "one-against-all": "it divides each class's own probability by their sum",
    }
    if outputs.link in reasons or not outputs.unclipped:
        reason = reasons.get(outputs.link, f"its probabilities undo gradients that were clipped at {outputs.clip!r}")
        raise InvalidParameter(
            f"output='probability' cannot be an XGBoost model: {reason}, and XGBoost has a sigmoid and a softmax only. "
            "Take output='score' for the sums of the trees, or to_onnx(model), which has the probabilities"
        )
    if outputs.weights is None:
        return np.zeros(groups)
    logs = -np.log(outputs.weights)
    return logs[1:] - logs[:1] if groups == 1 else logs


def _in_rounds(scores: TreeScores, start: NDArray[np.float64]) -> list[ScoreTree]:
    """The trees, one of each score in turn, with the start in the leaves of each score's first tree.

    Where one score has fewer trees, leaves of 0 take their places; `tree` is then -1.
    """
    own: dict[int, list[ScoreTree]] = defaultdict(list)
    for part in scores.trees:
        own[part.group].append(part)
    longest = max((len(parts) for parts in own.values()), default=0)
    # A score that starts elsewhere needs a leaf to hold that.
    longest = max(longest, 1) if start.any() else longest
    empty = np.zeros(1)
    found = []
    for number, group in itertools.product(range(longest), range(scores.groups)):
        part = next(iter(own[group][number : number + 1]), ScoreTree(tree=-1, group=group, values=empty))
        more = 0.0 if number else float(start[group])
        found.append(ScoreTree(tree=part.tree, group=group, values=part.values + more))
    return found


def _tree(tree: NodeTree, values: NDArray[np.float64], number: int, n_features: int) -> dict[str, Any]:
    """One tree's record. XGBoost sends listed categories to the right, and finds that child behind the left one."""
    n_nodes = len(tree)
    means, covers = tree.node_values(values), np.maximum(tree.covers, _LEAST_COVER)
    conditions, gains = means.copy(), np.zeros(n_nodes)
    parents, missing, kinds = np.full(n_nodes, _ROOT), np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    features, listed = np.zeros(n_nodes, dtype=np.int64), list[tuple[int, list[int]]]()
    for node, test in enumerate(tree.tests):
        if test is None:
            continue
        sides = [tree.left[node], tree.right[node]]
        parents[sides] = node
        features[node], missing[node] = test.feature, test.missing
        gains[node] = float(((means[sides] - means[node]) ** 2 * covers[sides]).sum())
        conditions[node] = test.below
        if test.codes:
            kinds[node] = 1
            listed.append((node, list(test.codes)))
    sizes = [len(codes) for _, codes in listed]
    return {
        "base_weights": _floats(means),
        "categories": [code for _, codes in listed for code in codes],
        "categories_nodes": [node for node, _ in listed],
        "categories_segments": [0, *itertools.accumulate(sizes[:-1])] if sizes else [],
        "categories_sizes": sizes,
        "default_left": missing.tolist(),
        "id": number,
        "left_children": tree.left.tolist(),
        "loss_changes": _floats(gains),
        "parents": parents.tolist(),
        "right_children": tree.right.tolist(),
        "split_conditions": _floats(conditions),
        "split_indices": features.tolist(),
        "split_type": kinds.tolist(),
        "sum_hessian": _floats(covers),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(n_nodes),
            "size_leaf_vector": "1",
        },
    }


def _leaf(value: float, number: int, n_features: int) -> dict[str, Any]:
    """The record of a tree that is one leaf."""
    none = np.full(1, -1)
    alone = NodeTree(tests=(None,), left=none, right=none, places=none, leaves=np.zeros(1, int), covers=np.ones(1))
    return _tree(alone, np.array([value]), number, n_features)


def _floats(values: NDArray[np.float64]) -> list[float]:
    """The nearest float32 numbers, as Python's own, which JSON writes in full, infinity included."""
    rounded: list[float] = values.astype(np.float32).astype(np.float64).tolist()
    return rounded
