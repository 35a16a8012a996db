from ledgerwood.verification.errata.privatree.feature_range import FeatureRange


def test_the_outputs():
    assert [FeatureRange().output(rows) for rows in FeatureRange().pair] == [(2,), (0.5,)]
