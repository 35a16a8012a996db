from ledgerwood.verification.errata.federated.data_bounds import DataBounds


def test_the_outputs():
    assert [DataBounds().output(rows) for rows in DataBounds().pair] == [(7.75,), (2.90625,)]
