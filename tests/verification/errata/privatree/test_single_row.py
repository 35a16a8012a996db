from ledgerwood.verification.errata.privatree.single_row import SingleRow


def test_the_outputs():
    assert [SingleRow().output(rows) for rows in SingleRow().pair] == [(1,), (0,)]
