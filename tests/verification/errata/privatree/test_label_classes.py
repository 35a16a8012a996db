from ledgerwood.verification.errata.privatree.label_classes import LabelClasses


def test_the_outputs():
    assert [LabelClasses().output(rows) for rows in LabelClasses().pair] == [(3,), (2,)]
