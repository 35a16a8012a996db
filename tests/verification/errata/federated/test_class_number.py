from ledgerwood.verification.errata.federated.class_number import ClassNumber


def test_the_outputs():
    assert [ClassNumber().output(rows) for rows in ClassNumber().pair] == [(3.0,), (2.0,)]
