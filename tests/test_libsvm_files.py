"""LIBSVM files: what scikit-learn reads of well-formed ones, and of others what each line alone gives."""

import gzip
import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import vstack
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from ledgerwood import Numeric, Schema, libsvm_files
from ledgerwood.errors import SchemaError
from ledgerwood.libsvm_files import libsvm_batches, no_rows

WIDTH = 6
SCHEMA = Schema.uniform(0, 1, n_features=WIDTH)


def read(path, text, schema=SCHEMA):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    X, y = rows_of(path, schema)
    return X.toarray(), y


def rows_of(path, schema):
    batches = [no_rows(len(schema.features)), *libsvm_batches(path, schema, strict=False)]
    return vstack([X for X, _ in batches], format="csr"), np.concatenate([labels for _, labels in batches])


def same(found, expected):
    """Bit for bit, of any NaN."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(found[~np.isnan(found)], expected[~np.isnan(expected)])


NUMBERS = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.from_regex(r"[+-]?[0-9]{1,20}\.[0-9]{0,20}([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.sampled_from(["nan", "inf", "-Infinity", "1.e5", ".5", "-.0", "0.1", "1e22", "1e23", "123456789012345e-22"]),
)


@st.composite
def files(draw):
    lines = []
    for _ in range(draw(st.integers(0, 8))):
        places = sorted(draw(st.sets(st.integers(1, WIDTH))))
        entries = [f"{place}:{draw(NUMBERS)}" for place in places]
        query = draw(st.sampled_from([[], ["qid:3"]]))
        gap = draw(st.sampled_from([" ", "\t", "  "]))
        line = gap.join([draw(NUMBERS), *query, *entries])
        lines.append(line + draw(st.sampled_from(["", " ", "\r", " # 1:2 a comment", "#"])))
        lines += draw(st.sampled_from([[], [""], ["# nothing here"], ["  "]]))
    return "\n".join(lines) + draw(st.sampled_from(["", "\n"])) if lines else ""


@pytest.mark.slow  # reads hundreds of random files
@given(files(), st.sampled_from([10, 1 << 20]))
@settings(deadline=None, max_examples=150)
def test_well_formed_files_are_read_as_scikit_learn_reads_them(tmp_path_factory, text, block):
    path = tmp_path_factory.mktemp("libsvm") / "rows.libsvm"
    expected, labels = load_svmlight_file(io.BytesIO(text.encode()), n_features=WIDTH, zero_based=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(libsvm_files, "BLOCK_BYTES", block)
        X, y = read(path, text)
        list(libsvm_batches(path, SCHEMA, strict=True))  # nothing of it is refused
    same(X, expected.toarray())
    same(y, labels)


def test_a_written_file_comes_back_packed_too(tmp_path):
    generator = np.random.default_rng(0)
    X = np.where(generator.random((50, WIDTH)) < 0.4, generator.normal(size=(50, WIDTH)), 0.0)
    y = generator.integers(0, 2, 50)
    text = io.BytesIO()
    dump_svmlight_file(X, y, text, zero_based=False)
    (tmp_path / "rows.svm.gz").write_bytes(gzip.compress(text.getvalue()))
    found, labels = rows_of(tmp_path / "rows.svm.gz", SCHEMA)
    np.testing.assert_allclose(found.toarray(), X, rtol=1e-15)  # 16 digits were written
    np.testing.assert_array_equal(labels, y)


BAD = [
    "1 0:1", "1 2:1 2:1", "1 3:1 2:1", "1 2", "1 2:", "1 :2", "1 2:x", "1 2:1 x:3", "1 2:3:4", "1:2 2:3", "1 -1:2",
    "1 1.5:2", "1 2:1 qid:4", "1 2:0x10", "1 2:1 3:\xff", "1 2,3:1",
]  # fmt: skip


@pytest.mark.parametrize("line", BAD)
def test_a_line_that_cannot_be_read_changes_no_other_one(tmp_path, line):
    """It has no label, and no value of a feature that must have one; rows for prediction are refused by line."""
    before, after = "1 1:0.5 6:1e-400", "2 3:0.1234567890123456789"
    X, y = read(tmp_path / "rows.libsvm", f"{before}\n\n{line}\n{after}\n".encode("latin-1"))
    alone, labels = read(tmp_path / "alone.libsvm", f"{before}\n{after}\n")
    np.testing.assert_array_equal(X[[0, 2]], alone)
    np.testing.assert_array_equal(y[[0, 2]], labels)
    assert math.isnan(y[1])
    assert math.isnan(X[1, 0])
    assert not X[1, 1:].any()
    with pytest.raises(SchemaError, match=r"rows\.libsvm, line 3 is not one of LIBSVM's format"):
        list(libsvm_batches(tmp_path / "rows.libsvm", SCHEMA, strict=True))


def test_labels_that_are_no_numbers_are_none_and_rows_for_prediction_need_none(tmp_path):
    X, y = read(tmp_path / "rows.libsvm", "spam 2:1\n1,2 2:1\n+1 2:1\n")
    np.testing.assert_array_equal(X[:, 1], 1.0)
    assert np.isnan(y).tolist() == [True, True, False]
    ((found, _),) = libsvm_batches(tmp_path / "rows.libsvm", SCHEMA, strict=True)
    assert found.shape == (3, WIDTH)


def test_features_that_the_schema_does_not_list_are_left_alone(tmp_path):
    X, _ = read(tmp_path / "rows.libsvm", f"1 2:1 {WIDTH + 1}:4 {10**30}:4\n1 {WIDTH}:2\n")
    assert X[:, [1, WIDTH - 1]].tolist() == [[1.0, 0.0], [0.0, 2.0]]


def test_the_gap_of_a_bad_line_is_in_a_feature_that_must_have_a_value(tmp_path):
    features = tuple(Numeric(f"x{place}", 0, 1, missing=place != 3) for place in range(WIDTH))
    X, _ = read(tmp_path / "rows.libsvm", "1 0:1\n", Schema(features=features))
    assert np.flatnonzero(np.isnan(X[0])).tolist() == [3]
    features = tuple(Numeric(f"x{place}", 0, 1, missing=True) for place in range(WIDTH))
    X, y = read(tmp_path / "rows.libsvm", "1 0:1\n", Schema(features=features))
    assert not X.any()
    assert math.isnan(y[0])


def test_what_is_no_file_of_the_kind_is_refused(tmp_path):
    (tmp_path / "rows.svm.gz").write_bytes(b"1 1:1\n")
    with pytest.raises(SchemaError, match="is not packed by gzip, or is damaged"):
        rows_of(tmp_path / "rows.svm.gz", SCHEMA)
    packed = gzip.compress(b"1 1:1\n" * 1000)
    (tmp_path / "rows.svm.gz").write_bytes(packed[:-9])
    with pytest.raises(SchemaError, match="is not packed by gzip, or is damaged"):
        rows_of(tmp_path / "rows.svm.gz", SCHEMA)
