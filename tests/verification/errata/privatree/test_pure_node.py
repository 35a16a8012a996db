from ledgerwood.verification.errata.privatree.pure_node import PureNode


def test_the_outputs():
    assert [PureNode().output(rows) for rows in PureNode().pair] == [(1,), (0,)]
