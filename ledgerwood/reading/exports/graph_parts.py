"""The arithmetic of an ONNX graph: from sums of trees to what `predict` and `predict_proba` give, in float64."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ledgerwood.curator import Numeric
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading.exports.scores import Outputs
from ledgerwood.reading.models import TreeModel

if TYPE_CHECKING:
    import onnx


@final
class GraphParts:
    """The nodes of a graph while it is built, with its constants and its outputs; names are numbers.

    Args:
        module: `onnx`, which the caller has imported.
    """

    __slots__ = ("_helper", "_numpy", "_types", "constants", "nodes", "outputs")

    def __init__(self, module: Any) -> None:
        self._helper, self._numpy, self._types = module.helper, module.numpy_helper, module.TensorProto
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def constant(self, values: Any) -> str:
        """A constant; returns its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.tensor(values, name))
        return name

    def tensor(self, values: Any, name: str = "") -> "onnx.TensorProto":
        """An array as ONNX has it; of strings, too."""
        array = np.asarray(values)
        made: onnx.TensorProto = self._numpy.from_array(
            array.astype(object) if array.dtype.kind == "U" else array, name
        )
        return made

    def node(self, operator: str, *inputs: str, domain: str = "", output: str = "", **attributes: Any) -> str:
        """One operator on named values; returns the name of its result."""
        name = output or f"v{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def to_double(self, value: str) -> str:
        """A value as float64."""
        return self.node("Cast", value, to=self._types.DOUBLE)

    def give(self, value: str, name: str, width: int) -> None:
        """Make a float64 value an output, float32 (n_rows, width)."""
        self.node("Cast", value, output=name, to=self._types.FLOAT)
        self.outputs.append(self._helper.make_tensor_value_info(name, self._types.FLOAT, [None, width]))

    def give_labels(self, places: str, name: str, classes: Sequence[Any]) -> None:
        """Make the classes at these places, int64 (n_rows,), an output."""
        names = np.asarray(classes)
        kinds = {"U": "STRING", "b": "BOOL", "i": "INT64", "u": "INT64", "f": "DOUBLE"}
        if names.dtype.kind not in kinds:
            raise InvalidParameter(f"classes={classes!r} must be strings, or numbers, or booleans, to be exported")
        listed = self.constant(names.astype(np.int64) if names.dtype.kind in "iu" else names)
        self.node("Gather", listed, places, output=name, axis=0)
        kind = getattr(self._types, kinds[names.dtype.kind])
        self.outputs.append(self._helper.make_tensor_value_info(name, kind, [None]))


def write_outputs(graph: GraphParts, read: TreeModel, outputs: Outputs, scores: str, groups: int) -> None:
    """Add what the model predicts to the graph, as its outputs.

    Args:
        graph: with the scores.
        read: the model.
        outputs: how its scores become predictions.
        scores: name of the scores, float64 (n_rows, groups).
        groups: how many scores a row has.
    """
    target = read.schema.target
    if isinstance(target, Numeric):
        low, high = graph.constant(float(target.low)), graph.constant(float(target.high))
        graph.give(graph.node("Min", graph.node("Max", scores, low), high), "variable", 1)
        return
    if outputs.link == "score":
        graph.give(scores, "scores", groups)
        return
    classes = len(read.classes)
    probabilities = _probabilities(graph, outputs, scores, groups, classes)
    if classes == 1 or outputs.link == "label":
        places = graph.node("ArgMax", probabilities, axis=1, keepdims=0)
    elif groups == 1:
        above = graph.node("Greater", scores, graph.constant(0.0))
        places = graph.node("Squeeze", graph.node("Cast", above, to=_INT64), graph.constant(np.array([1])))
    else:
        places = graph.node("ArgMax", scores, axis=1, keepdims=0)
    graph.give_labels(places, "label", read.classes)
    graph.give(probabilities, "probabilities", classes)
    if outputs.link == "label":
        graph.give(probabilities, "scores", classes)
    else:
        graph.give(scores, "scores", groups)


_INT64 = 7
"""ONNX's number of this type."""


def _probabilities(graph: GraphParts, outputs: Outputs, scores: str, groups: int, classes: int) -> str:
    """Name of the classes' probabilities, float64 (n_rows, K), as `predict_proba` makes them."""
    if classes == 1:
        return graph.node("Add", graph.node("Mul", scores, graph.constant(0.0)), graph.constant(1.0))
    match outputs.link:
        case "label":
            found = scores if groups > 1 else _both(graph, graph.node("Sub", graph.constant(1.0), scores), scores)
        case "softmax":
            zero = graph.node("Mul", scores, graph.constant(0.0))
            found = _softmax(graph, outputs, scores if groups > 1 else _both(graph, zero, scores))
        case "one-against-all":
            own, _ = _pulls(graph, outputs, scores)
            # Where every class's own probability is 0, they are even.
            total = _sum(graph, own)
            even = graph.constant(np.full((1, classes), 1.0 / classes))
            some = graph.node("Greater", total, graph.constant(0.0))
            found = graph.node("Where", some, graph.node("Div", own, total), even)
        case _:
            second, first = _pulls(graph, outputs, scores)
            found = _both(graph, first, second)
    if outputs.weights is None:
        return found
    return _shares(graph, graph.node("Div", found, graph.constant(outputs.weights[np.newaxis])))


def _pulls(graph: GraphParts, outputs: Outputs, scores: str) -> tuple[str, str]:
    """Each score's probability of its class, and of what it is told from, (n_rows, n_groups)."""
    own, other = (_pull(graph, outputs, value) for value in (scores, graph.node("Neg", scores)))
    total = graph.node("Add", own, other)
    return graph.node("Div", own, total), graph.node("Div", other, total)


def _pull(graph: GraphParts, outputs: Outputs, scores: str) -> str:
    one = graph.constant(1.0)
    if outputs.own == "squared":
        half = graph.node("Mul", graph.node("Add", scores, one), graph.constant(0.5))
        return graph.node("Min", graph.node("Max", half, graph.constant(0.0)), one)
    # In full: runtimes may compute ONNX's own sigmoid with an approximation.
    grown = graph.node("Add", graph.node("Exp", graph.node("Neg", scores)), one)
    return graph.node("Min", graph.node("Div", one, grown), graph.constant(outputs.clip))


def _softmax(graph: GraphParts, outputs: Outputs, scores: str) -> str:
    """See `unclipped_probabilities`: shares of exponentials, with the effect of clipped gradients undone."""
    largest = graph.node("ReduceMax", scores, graph.constant(np.array([1])), keepdims=1)
    found = _shares(graph, graph.node("Exp", graph.node("Sub", scores, largest)))
    if outputs.unclipped:
        return found
    squares = graph.node("Add", _sum(graph, graph.node("Mul", found, found)), graph.constant(1.0))
    norms = graph.node("Sub", squares, graph.node("Mul", found, graph.constant(2.0)))
    norms = graph.node("Sqrt", graph.node("Max", norms, graph.constant(0.0)))
    factors = graph.node("Max", graph.node("Div", norms, graph.constant(outputs.clip)), graph.constant(1.0))
    return _shares(graph, graph.node("Mul", found, factors))


def _shares(graph: GraphParts, values: str) -> str:
    return graph.node("Div", values, _sum(graph, values))


def _sum(graph: GraphParts, values: str) -> str:
    return graph.node("ReduceSum", values, graph.constant(np.array([1])), keepdims=1)


def _both(graph: GraphParts, first: str, second: str) -> str:
    return graph.node("Concat", first, second, axis=1)
