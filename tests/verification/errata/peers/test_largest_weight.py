import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.peers.largest_weight import LargestWeight


def test_the_scale_is_that_of_the_largest_weight():
    assert [LargestWeight().output(rows) for rows in LargestWeight().pair] == [(6.0,), (2.0,)]


def test_no_noise_is_refused():
    with pytest.raises(InvalidParameter, match="noise_multiplier"):
        LargestWeight(noise_multiplier=0.0)
