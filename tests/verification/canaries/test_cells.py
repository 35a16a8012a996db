import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.verification.canaries.rows import canary_cells, extreme_labels

BINARY = Schema(features=tuple(Categorical(f"b{i}", (0, 1)) for i in range(10)))


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    features: list[Numeric | Categorical] = []
    for place in range(draw(st.integers(1, 5))):
        if draw(st.booleans()):
            low = draw(st.floats(-1e3, 1e3))
            features.append(Numeric(f"f{place}", low, low + draw(st.floats(0.5, 1e3)), draw(st.booleans())))
        else:
            names = tuple(f"c{i}" for i in range(draw(st.integers(1, 5))))
            features.append(Categorical(f"f{place}", names, draw(st.booleans())))
    return Schema(features=tuple(features))


@settings(max_examples=60, deadline=None)
@given(schema=schemas(), bins=st.integers(2, 9), wanted=st.integers(1, 40))
def test_no_two_canaries_share_a_cell_or_a_leaf(schema: Schema, bins: int, wanted: int) -> None:
    room = np.prod([bins if isinstance(f, Numeric) else len(f.categories) for f in schema.features])
    canaries = int(min(wanted, room))
    cells = canary_cells(schema, canaries, bins=bins)
    assert cells.rows.shape == (canaries, len(schema.features))
    assert len(set(cells.leaf(cells.rows, bins=bins).tolist())) == canaries


def test_ten_binary_features_are_tested_one_a_level() -> None:
    cells = canary_cells(BINARY, 1000, bins=32)
    assert cells.structure.depth == 10
    for level in range(10):
        assert set(cells.structure.feature[2**level - 1 : 2 ** (level + 1) - 1].tolist()) == {level}
    assert len({tuple(row) for row in cells.rows.tolist()}) == 1000


def test_more_canaries_than_cells_are_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"canaries=1025 must be at most 1024, the cells of this schema"):
        canary_cells(BINARY, 1025, bins=32)


def test_labels_are_the_ends_of_the_target() -> None:
    features = (Numeric("x", 0.0, 1.0),)
    assert extreme_labels(Schema(features=features, target=Numeric("y", 2.0, 5.0))) == (5.0, 2.0)
    assert extreme_labels(Schema(features=features, target=Categorical("y", ("no", "yes")))) == ("yes", "no")
    with pytest.raises(SchemaError, match="declare the schema's target"):
        extreme_labels(Schema(features=features))
    with pytest.raises(InvalidParameter, match="has one class"):
        extreme_labels(Schema(features=features, target=Categorical("y", ("only",))))
