import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.sgbdt.small_nodes import SmallNodes


@pytest.mark.parametrize("least", [2, 5])
def test_the_outputs(least):
    specimen = SmallNodes(least=least)
    assert [specimen.output(rows) for rows in specimen.pair] == [(1.0,), (0.0,)]
    assert specimen.delta(1.0) == 1.0


@pytest.mark.parametrize("wrong", [0, 1, 2.5])
def test_a_number_that_splits_any_node_is_refused(wrong):
    with pytest.raises(InvalidParameter, match=r"least=.*>= 2"):
        SmallNodes(least=wrong)
