"""Data that raise when a module reads them that must not; tests/trainers/test_tripwire.py puts them to use."""

import sys
import types

import numpy as np
import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification import RowsRead, tripwire

VALUES = np.arange(6.0).reshape(3, 2)
READS = {
    "an index": "a[0]",
    "a loop": "list(a)",
    "a sum": "np.sum(a)",
    "a ufunc": "np.add(a, 1)",
    "a sorted copy": "np.sort(a)",
    "a median": "np.median(a)",
    "a list of arrays": "np.concatenate([a, a])",
}
OF_ARRAYS = READS | {
    "an operator": "a + 1",
    "a comparison": "a > 2",
    "a method": "a.sum()",
    "a list": "a.tolist()",
    "bytes": "a.tobytes()",
    "an item": "a.item(0)",
    "a walk": "next(a.flat)",
    "a transposed view": "a.T",
    "a place": "a.argmax()",
    "a product": "a @ a.T",
    "membership": "3.0 in a",
    "a copy": "copy.copy(a)",
    "a pickle": "pickle.dumps(a)",
    "a text": "str(a)",
    "an output": "np.add(1, 1, out=a)",
}


def module_named(name, code):
    module = types.ModuleType(name)
    exec("import copy, pickle\nimport numpy as np\n" + code, module.__dict__)
    return module


@pytest.mark.parametrize("kind", ["array", "table"])
@pytest.mark.parametrize("read", OF_ARRAYS)
def test_each_way_to_read_is_seen(read, kind):
    if kind == "table" and read not in READS:
        return
    code = f"def read(a):\n    return {OF_ARRAYS[read]}\n"
    inside, outside = module_named("mine.rows.reader", code), module_named("mine.model", code)
    log = []
    guarded = tripwire(VALUES.copy(), allowed=("mine.rows",), kind=kind, log=log)
    inside.read(guarded)
    assert set(log) == {"mine.rows.reader"}
    with pytest.raises(RowsRead, match=r"mine\.model has read rows; only mine\.rows may"):
        outside.read(guarded)
    assert log[-1] == "mine.model"
    module_named("mine_too", code).read(guarded)  # another package
    assert "mine_too" not in log


@pytest.mark.parametrize("kind", ["array", "table"])
def test_shapes_types_and_lengths_are_free(kind):
    code = "def look(a):\n    return a.shape, a.ndim, len(a), str(a.dtype), np.shape(a)\n"
    guarded = tripwire(VALUES, allowed="mine.rows", kind=kind)
    look = module_named("mine.model", code).look
    assert look(guarded) == ((3, 2), 2, 3, "float64", (3, 2)) if kind == "array" else True
    if kind == "array":
        sizes = module_named("mine.model", "def look(a):\n    return np.ndim(a), np.size(a), a.size, a.nbytes\n")
        assert sizes.look(guarded) == (2, 6, 6, 48)


def test_the_innermost_watched_module_is_the_one_that_reads():
    """A reader that is called by a model may read; a model that is called back by a reader may not."""
    reader = module_named("mine.rows", "def read(a, then=None):\n    return then(a) if then else a[0]\n")
    model = module_named("mine.model", "def fit(a, read):\n    return read(a)\ndef peek(a):\n    return a[0]\n")
    guarded = tripwire(VALUES, allowed=("mine.rows",))
    assert model.fit(guarded, reader.read).tolist() == [0.0, 1.0]
    with pytest.raises(RowsRead, match=r"mine\.model"):
        reader.read(guarded, model.peek)


def test_several_modules_may_read_and_any_package_can_be_watched():
    guarded = tripwire(VALUES, allowed=("rows", "mine.check"), package="mine")
    module_named("mine.check", "def f(a):\n    return a[0]\n").f(guarded)
    module_named("rows", "def f(a):\n    return a[0]\n").f(guarded)
    with pytest.raises(RowsRead):
        module_named("mine.checks", "def f(a):\n    return a[0]\n").f(guarded)


def test_two_guards_have_two_logs_and_views_keep_theirs():
    first, second = [], []
    one = tripwire(VALUES, allowed="mine", log=first)
    other = tripwire(VALUES, allowed="mine", log=second)
    read = module_named("mine", "def f(a):\n    return a.T.max()\n").f
    read(one)
    assert first
    assert not second
    read(other)
    assert second
    assert tripwire(VALUES, allowed="mine").tolist() == VALUES.tolist()  # the test reads freely


@pytest.mark.parametrize("read", ["float(a)", "int(a)", "bool(a)", "[0, 1, 2, 3][a]"])
def test_a_single_number_is_read_by_becoming_one(read):
    guarded = tripwire(np.array(3), allowed="mine.rows")
    code = f"def read(a):\n    return {read}\n"
    assert module_named("mine.rows", code).read(guarded) in (3, True)
    with pytest.raises(RowsRead, match=r"mine\.model"):
        module_named("mine.model", code).read(guarded)


def test_a_plain_array_is_all_that_is_left_of_a_read():
    guarded = tripwire(VALUES, allowed="mine")
    assert type(guarded + 1) is np.ndarray
    assert type(guarded[0]) is np.ndarray
    assert (guarded + 1).tolist() == (VALUES + 1).tolist()
    assert "mine" not in sys.modules


@pytest.mark.parametrize(
    ("array", "options", "message"),
    [
        ([1.0], {}, "a list is no array"),
        (VALUES, {"allowed": ()}, "must name at least one module"),
        (VALUES, {"kind": "frame"}, "kind='frame' must be 'array' or 'table'"),
    ],
)
def test_bad_arguments_are_refused(array, options, message):
    with pytest.raises(InvalidParameter, match=message):
        tripwire(array, **options)
