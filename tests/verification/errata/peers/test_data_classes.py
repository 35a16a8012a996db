from ledgerwood.verification.errata.peers.data_classes import DataClasses


def test_the_outputs():
    assert [DataClasses().output(rows) for rows in DataClasses().pair] == [(3,), (2,)]
