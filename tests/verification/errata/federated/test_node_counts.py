from ledgerwood.verification.errata.federated.node_counts import NodeCounts


def test_the_outputs():
    assert [NodeCounts().output(rows) for rows in NodeCounts().pair] == [(4,), (3,)]
