"""The statement of a fit, there and back."""

import json
import math

import pytest

from ledgerwood import Adjacency, PrivacyUnit
from ledgerwood.trainers import PrivacyStatement

STATEMENT = {
    "epsilon": 0.5, "delta": 1e-6, "adjacency": Adjacency.ZERO_OUT, "unit": PrivacyUnit.ROW, "method": "profile",
    "certified": True, "randomness": "secure", "assumptions": ("a", "b"), "ledger_head": "0" * 64,
}  # fmt: skip


@pytest.mark.parametrize("epsilon", [0.5, 0.1 + 0.2, math.inf])
def test_a_statement_comes_back_from_its_record(epsilon):
    statement = PrivacyStatement(**(STATEMENT | {"epsilon": epsilon}))
    text = json.dumps(statement.to_record(), allow_nan=False)
    assert PrivacyStatement.from_record(json.loads(text)) == statement


def test_an_infinite_epsilon_is_null_and_not_zero():
    record = PrivacyStatement(**(STATEMENT | {"epsilon": math.inf, "randomness": "test"})).to_record()
    assert record["epsilon"] is None
    assert (record["adjacency"], record["unit"]) == ("zero-out", "row")
