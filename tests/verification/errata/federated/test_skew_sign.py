from ledgerwood.verification.errata.federated.skew_sign import SkewSign


def test_the_outputs():
    assert [SkewSign().output(rows) for rows in SkewSign().pair] == [(1,), (0,)]
