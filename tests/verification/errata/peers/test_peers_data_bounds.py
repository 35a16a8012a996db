from ledgerwood.verification.errata.peers.data_bounds import DataBounds


def test_the_outputs():
    assert [DataBounds().output(rows) for rows in DataBounds().pair] == [(17.0, 90.0), (17.0, 45.0)]
