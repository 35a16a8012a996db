"""The numbers in the tables of PrivaTree's paper (Vos and others, arXiv:2305.15394), as printed: constants only.

A data set is named by its part of the tables and its name: some are in two parts, with other columns.
"""

METHODS = ("decision tree", "BDPT", "PrivaTree*", "DPGDF", "DiffPrivLib", "PrivaTree")
Key = tuple[str, str]


def _rows(text: str) -> dict[Key, tuple[str, ...]]:
    """Lines of a part, a data set and its numbers."""
    found = {}
    for line in text.strip().splitlines():
        part, name, *numbers = line.split()
        found[part, name] = tuple(numbers)
    return found


TABLE_II = _rows("""
numbers Bioresponse .701 .502 .574 - .519 .564
numbers Diabetes130US .606 .511 .601 - .507 .600
numbers Higgs .657 timeout .658 - .513 .659
numbers MagicTelescope .783 .500 .756 - .553 .740
numbers MiniBooNE .872 .500 .859 - .509 .858
numbers bank-marketing .768 .501 .735 - .538 .747
numbers california .783 .500 .754 - .512 .756
numbers covertype .741 .502 .745 - .569 .748
numbers credit .748 .500 .739 - .516 .720
numbers default-of-credit .700 .500 .679 - .549 .684
numbers electricity .731 .500 .738 - .555 .736
numbers eye_movements .571 .500 .532 - .518 .514
numbers heloc .702 .518 .696 - .532 .677
numbers house_16H .819 .500 .765 - .555 .769
numbers jannis .718 .500 .707 - .564 .702
numbers pol .930 .509 .871 - .580 .836
mixed albert .641 .501 .632 .511 .546 .631
mixed compas-two-years .664 .562 .639 .571 .569 .595
mixed covertype .756 .614 .755 .537 .539 .755
mixed default-of-credit .704 .500 .691 .528 .535 .689
mixed electricity .732 .500 .740 .518 .527 .734
mixed eye_movements .570 .500 .514 .523 .524 .533
mixed road-safety .728 .685 .710 .685 .555 .721
UCI adult .840 .752 .815 .753 .757 .820
UCI breast-w .950 .614 .909 - .842 .886
UCI diabetes .723 .624 .659 - .667 .673
UCI mushroom .977 .880 .973 .761 .749 .985
UCI nursery 1.000 1.000 1.000 .707 .767 1.000
UCI vote .944 .608 .771 .561 .827 .737
""")
"""Accuracy at epsilon .1, in the order of METHODS."""
TABLE_VI = _rows("""
numbers Bioresponse .701 .497 .515 - .510 .531
numbers Diabetes130US .606 .505 .575 - .547 .530
numbers Higgs .657 timeout .647 - .506 .648
numbers MagicTelescope .783 .500 .628 - .637 .640
numbers MiniBooNE .872 .500 .797 - .506 .761
numbers bank-marketing .768 .500 .656 - .592 .526
numbers california .783 .500 .670 - .552 .662
numbers covertype .741 .500 .736 - .535 .730
numbers credit .748 .500 .693 - .519 .558
numbers default-of-credit .700 .500 .596 - .516 .541
numbers electricity .731 .500 .699 - .616 .658
numbers eye_movements .571 .500 .504 - .516 .511
numbers heloc .702 .509 .581 - .534 .564
numbers house_16H .819 .500 .656 - .523 .664
numbers jannis .718 .500 .654 - .565 .638
numbers pol .930 .499 .567 - .570 .535
mixed albert .641 .500 .599 .500 .504 .542
mixed compas-two-years .664 .503 .528 .495 .537 .520
mixed covertype .756 .507 .746 .534 .533 .743
mixed default-of-credit .704 .500 .621 .507 .533 .520
mixed electricity .732 .500 .686 .499 .587 .650
mixed eye_movements .570 .500 .511 .483 .513 .507
mixed road-safety .728 .500 .689 .685 .548 .688
UCI adult .840 .747 .777 .742 .753 .771
UCI breast-w .950 .502 .824 - .690 .331
UCI diabetes .723 .660 .514 - .581 .513
UCI mushroom .977 .640 .778 .654 .752 .784
UCI nursery 1.000 .623 .949 .564 .688 1.000
UCI vote .944 .560 .535 .464 .531 .608
""")
"""The same at epsilon .01."""
TABLE_VII = _rows("""
numbers Bioresponse .701 .499 .699 - .514 .683
numbers Diabetes130US .606 .545 .605 - .526 .605
numbers Higgs .657 timeout .660 - .504 .658
numbers MagicTelescope .783 .500 .779 - .606 .783
numbers MiniBooNE .872 .601 .869 - .502 .868
numbers bank-marketing .768 .600 .763 - .523 .765
numbers california .783 .501 .780 - .553 .782
numbers covertype .741 .529 .747 - .532 .746
numbers credit .748 .557 .747 - .535 .751
numbers default-of-credit .700 .516 .699 - .529 .696
numbers electricity .731 .606 .742 - .604 .740
numbers eye_movements .571 .500 .577 - .533 .581
numbers heloc .702 .628 .700 - .604 .701
numbers house_16H .819 .695 .817 - .595 .805
numbers jannis .718 .632 .717 - .559 .716
numbers pol .930 .638 .912 - .551 .905
mixed albert .641 .633 .639 .512 .506 .638
mixed compas-two-years .664 .589 .674 .582 .569 .656
mixed covertype .756 .614 .756 .516 .536 .753
mixed default-of-credit .704 .500 .698 .528 .607 .696
mixed electricity .732 .612 .741 .518 .579 .741
mixed eye_movements .570 .499 .575 .530 .519 .573
mixed road-safety .728 .601 .709 .642 .517 .722
UCI adult .840 .809 .822 .752 .758 .823
UCI breast-w .950 .559 .930 - .917 .946
UCI diabetes .723 .645 .741 - .683 .706
UCI mushroom .977 .950 .998 .728 .749 .999
UCI nursery 1.000 1.000 1.000 .690 .715 1.000
UCI vote .944 .901 .957 .802 .836 .944
""")
"""The same at epsilon 1."""
TABLE_IV = _rows("""
numbers Bioresponse 3,434 419 0 0.500
numbers Diabetes130US 71,090 7 0 0.500
numbers Higgs 940,160 24 0 0.500
numbers MagicTelescope 13,376 10 0 0.500
numbers MiniBooNE 72,998 50 0 0.500
numbers bank-marketing 10,578 7 0 0.500
numbers california 20,634 8 0 0.500
numbers covertype 566,602 10 0 0.500
numbers credit 16,714 10 0 0.500
numbers default-of-credit 13,272 20 0 0.500
numbers electricity 38,474 7 0 0.500
numbers eye_movements 7,608 20 0 0.500
numbers heloc 10,000 22 0 0.500
numbers house_16H 13,488 16 0 0.500
numbers jannis 57,580 54 0 0.500
numbers pol 10,082 26 0 0.500
mixed albert 58,252 31 10 0.500
mixed compas-two-years 4,966 11 8 0.500
mixed covertype 423,680 54 44 0.500
mixed default-of-credit 13,272 21 1 0.500
mixed electricity 38,474 8 1 0.500
mixed eye_movements 7,608 23 3 0.500
mixed road-safety 111,762 32 3 0.500
UCI adult 45,222 14 8 0.752
UCI breast-w 683 9 0 0.650
UCI diabetes 768 8 0 0.651
UCI mushroom 5,644 22 22 0.618
UCI nursery 12,960 8 8 0.667
UCI vote 232 16 16 0.534
""")
"""Rows, features, categorical features, the larger class's share."""
TABLE_V = _rows("""
numbers Bioresponse <1 1 2 - <1 7
numbers Diabetes130US <1 <1 <1 - <1 1
numbers Higgs 9 >7200 2 - 6 108
numbers MagicTelescope <1 1 <1 - <1 1
numbers MiniBooNE 1 213 1 - <1 12
numbers bank-marketing <1 <1 <1 - <1 <1
numbers california <1 1 <1 - <1 1
numbers covertype 1 9 1 - 4 24
numbers credit <1 <1 <1 - <1 1
numbers default-of-credit <1 1 <1 - <1 1
numbers electricity <1 <1 <1 - <1 1
numbers eye_movements <1 <1 <1 - <1 1
numbers heloc <1 <1 <1 - <1 1
numbers house_16H <1 2 <1 - <1 1
numbers jannis 1 98 1 - <1 9
numbers pol <1 <1 <1 - <1 1
mixed albert <1 2 1 <1 <1 5
mixed compas-two-years <1 <1 <1 <1 <1 <1
mixed covertype 1 13 1 1 3 21
mixed default-of-credit <1 1 <1 <1 <1 1
mixed electricity <1 <1 <1 <1 <1 1
mixed eye_movements <1 <1 <1 <1 <1 1
mixed road-safety 1 50 1 <1 1 14
UCI adult <1 1 <1 <1 <1 1
UCI breast-w <1 <1 <1 - <1 <1
UCI diabetes <1 <1 <1 - <1 <1
UCI mushroom <1 <1 <1 <1 <1 <1
UCI nursery <1 <1 <1 <1 <1 <1
UCI vote <1 <1 <1 <1 <1 <1
""")
"""Seconds, in the order of METHODS."""


def _guarantees(text: str) -> dict[tuple[Key, str, float], tuple[str, ...]]:
    """Lines of a part, a data set, a learner, an epsilon and numbers."""
    found = {}
    for line in text.strip().splitlines():
        part, name, learner, epsilon, *numbers = line.split()
        found[(part, name), learner, float(epsilon)] = tuple(numbers)
    return found


SHARES = (0.001, 0.005, 0.01)
"""Poisoned rows of the training rows, in Tables III and VIII."""
ERRORS_II = _rows("""
numbers Bioresponse .015 .017
numbers Diabetes130US .001 .001
numbers Higgs .001 .001
numbers MagicTelescope .003 .005
numbers MiniBooNE .002 .002
numbers bank-marketing .008 .008
numbers california .009 .006
numbers covertype .002 .001
numbers credit .003 .014
numbers default-of-credit .008 .003
numbers electricity .003 .006
numbers eye_movements .007 .009
numbers heloc .002 .011
numbers house_16H .010 .007
numbers jannis .003 .003
numbers pol .011 .015
mixed albert .002 .003
mixed compas-two-years .007 .013
mixed covertype .001 .001
mixed default-of-credit .005 .006
mixed electricity .004 .004
mixed eye_movements .007 .005
mixed road-safety .003 .001
UCI adult .001 .003
UCI breast-w .025 .019
UCI diabetes .011 .019
UCI mushroom .011 .002
UCI nursery .000 .000
UCI vote .081 .061
""")
ERRORS_VI = _rows("""
numbers Bioresponse .012 .022
numbers Diabetes130US .007 .010
numbers Higgs .001 .000
numbers MagicTelescope .030 .036
numbers MiniBooNE .007 .014
numbers bank-marketing .025 .019
numbers california .024 .041
numbers covertype .002 .001
numbers credit .027 .031
numbers default-of-credit .018 .025
numbers electricity .014 .017
numbers eye_movements .010 .007
numbers heloc .014 .019
numbers house_16H .019 .010
numbers jannis .009 .012
numbers pol .008 .016
mixed albert .008 .007
mixed compas-two-years .018 .022
mixed covertype .002 .002
mixed default-of-credit .023 .009
mixed electricity .018 .023
mixed eye_movements .017 .009
mixed road-safety .002 .002
UCI adult .007 .010
UCI breast-w .038 .143
UCI diabetes .055 .086
UCI mushroom .040 .064
UCI nursery .031 .000
UCI vote .028 .158
""")
ERRORS_VII = _rows("""
numbers Bioresponse .009 .006
numbers Diabetes130US .002 .002
numbers Higgs .000 .002
numbers MagicTelescope .006 .005
numbers MiniBooNE .001 .001
numbers bank-marketing .004 .003
numbers california .003 .005
numbers covertype .001 .001
numbers credit .002 .003
numbers default-of-credit .006 .006
numbers electricity .001 .002
numbers eye_movements .010 .007
numbers heloc .006 .006
numbers house_16H .003 .005
numbers jannis .004 .003
numbers pol .004 .006
mixed albert .003 .002
mixed compas-two-years .006 .006
mixed covertype .001 .001
mixed default-of-credit .006 .004
mixed electricity .002 .002
mixed eye_movements .004 .007
mixed road-safety .003 .004
UCI adult .003 .001
UCI breast-w .012 .008
UCI diabetes .012 .028
UCI mushroom .001 .001
UCI nursery .000 .000
UCI vote .012 .022
""")
"""Standard errors of PrivaTree* and PrivaTree in Tables II, VI and VII."""
TABLE_III = _guarantees("""
numbers Bioresponse tree .01 .522 .511 .458 .398
numbers Bioresponse tree .1 .545 .446 .149 .037
numbers Bioresponse regression .01 .539 .528 .473 .411
numbers Bioresponse regression .1 .539 .442 .147 .036
numbers Diabetes130US tree .01 .568 .324 .033 .002
numbers Diabetes130US tree .1 .600 .002 .000 .000
numbers Diabetes130US regression .01 .516 .295 .030 .002
numbers Diabetes130US regression .1 .528 .002 .000 .000
numbers Higgs tree .01 .646 .000 .000 .000
numbers Higgs tree .1 .659 .000 .000 .000
numbers Higgs regression .01 .496 .000 .000 .000
numbers Higgs regression .1 .592 .000 .000 .000
numbers MagicTelescope tree .01 .652 .590 .384 .224
numbers MagicTelescope tree .1 .738 .271 .004 .000
numbers MagicTelescope regression .01 .598 .541 .352 .205
numbers MagicTelescope regression .1 .662 .243 .003 .000
numbers MiniBooNE tree .01 .764 .428 .042 .002
numbers MiniBooNE tree .1 .852 .003 .000 .000
numbers MiniBooNE regression .01 .418 .234 .023 .001
numbers MiniBooNE regression .1 .491 .001 .000 .000
numbers bank-marketing tree .01 .564 .521 .371 .243
numbers bank-marketing tree .1 .733 .329 .011 .000
numbers bank-marketing regression .01 .480 .443 .315 .207
numbers bank-marketing regression .1 .578 .260 .009 .000
numbers california tree .01 .699 .595 .308 .134
numbers california tree .1 .762 .154 .000 .000
numbers california regression .01 .509 .434 .224 .098
numbers california regression .1 .564 .114 .000 .000
numbers covertype tree .01 .729 .008 .000 .000
numbers covertype tree .1 .747 .000 .000 .000
numbers covertype regression .01 .574 .006 .000 .000
numbers covertype regression .1 .615 .000 .000 .000
numbers credit tree .01 .536 .471 .277 .142
numbers credit tree .1 .725 .198 .001 .000
numbers credit regression .01 .464 .408 .240 .123
numbers credit regression .1 .526 .143 .001 .000
numbers default-of-credit tree .01 .552 .499 .325 .191
numbers default-of-credit tree .1 .676 .249 .003 .000
numbers default-of-credit regression .01 .506 .458 .298 .175
numbers default-of-credit regression .1 .560 .206 .003 .000
numbers electricity tree .01 .670 .496 .145 .031
numbers electricity tree .1 .732 .036 .000 .000
numbers electricity regression .01 .484 .358 .105 .022
numbers electricity regression .1 .505 .025 .000 .000
numbers eye_movements tree .01 .507 .477 .375 .278
numbers eye_movements tree .1 .515 .283 .026 .001
numbers eye_movements regression .01 .511 .481 .378 .280
numbers eye_movements regression .1 .503 .276 .025 .001
numbers heloc tree .01 .593 .547 .397 .266
numbers heloc tree .1 .681 .306 .012 .000
numbers heloc regression .01 .534 .493 .358 .240
numbers heloc regression .1 .524 .236 .010 .000
numbers house_16H tree .01 .615 .556 .362 .211
numbers house_16H tree .1 .751 .276 .004 .000
numbers house_16H regression .01 .489 .442 .288 .168
numbers house_16H regression .1 .499 .184 .002 .000
numbers jannis tree .01 .634 .400 .064 .006
numbers jannis tree .1 .705 .007 .000 .000
numbers jannis regression .01 .482 .304 .048 .005
numbers jannis regression .1 .569 .006 .000 .000
numbers pol tree .01 .580 .535 .389 .261
numbers pol tree .1 .859 .386 .016 .000
numbers pol regression .01 .477 .440 .320 .214
numbers pol regression .1 .635 .285 .012 .000
""")
"""Clean accuracy and guarantees at the SHARES, of PrivaTree and diffprivlib's logistic regression."""
TABLE_VIII = _guarantees("""
mixed albert tree .01 .53 .34 .05 .01
mixed albert tree .1 .63 .01 .00 .00
mixed albert regression .01 .49 .31 .05 .00
mixed albert regression .1 .52 .01 .00 .00
mixed compas-two-years tree .01 .53 .51 .44 .36
mixed compas-two-years tree .1 .61 .46 .09 .01
mixed compas-two-years regression .01 .50 .48 .41 .34
mixed compas-two-years regression .1 .47 .35 .07 .01
mixed covertype tree .01 .74 .03 .00 .00
mixed covertype tree .1 .75 .00 .00 .00
mixed covertype regression .01 .54 .02 .00 .00
mixed covertype regression .1 .65 .00 .00 .00
mixed default-of-credit tree .01 .56 .50 .33 .19
mixed default-of-credit tree .1 .67 .25 .00 .00
mixed default-of-credit regression .01 .50 .45 .3 .17
mixed default-of-credit regression .1 .56 .21 .00 .00
mixed electricity tree .01 .64 .48 .14 .03
mixed electricity tree .1 .74 .04 .00 .00
mixed electricity regression .01 .52 .38 .11 .02
mixed electricity regression .1 .52 .03 .00 .00
mixed eye_movements tree .01 .50 .47 .37 .28
mixed eye_movements tree .1 .51 .28 .03 .00
mixed eye_movements regression .01 .50 .47 .37 .27
mixed eye_movements regression .1 .49 .27 .02 .00
mixed road-safety tree .01 .69 .28 .01 .00
mixed road-safety tree .1 .72 .00 .00 .00
mixed road-safety regression .01 .52 .21 .01 .00
mixed road-safety regression .1 .56 .00 .00 .00
UCI adult tree .01 .77 .54 .13 .02
UCI adult tree .1 .82 .02 .00 .00
UCI adult regression .01 .58 .40 .10 .02
UCI adult regression .1 .76 .02 .00 .00
UCI breast-w tree .01 .69 .69 .68 .66
UCI breast-w tree .1 .89 .89 .73 .54
UCI breast-w regression .01 .45 .45 .44 .43
UCI breast-w regression .1 .73 .73 .60 .44
UCI diabetes tree .01 .63 - .61 .59
UCI diabetes tree .1 .66 - .49 .36
UCI diabetes regression .01 .55 - .53 .52
UCI diabetes regression .1 .62 - .46 .34
UCI mushroom tree .01 .87 .83 .70 .55
UCI mushroom tree .1 .98 .66 .11 .01
UCI mushroom regression .01 .48 .46 .39 .31
UCI mushroom regression .1 .59 .39 .07 .01
UCI nursery tree .01 1.00 .90 .60 .36
UCI nursery tree .1 1.00 .37 .01 .00
UCI nursery regression .01 .61 .55 .37 .22
UCI nursery regression .1 .95 .35 .01 .00
UCI vote tree .01 .57 - .57 .57
UCI vote tree .1 .75 - .75 .68
UCI vote regression .01 .21 - .21 .21
UCI vote regression .1 .55 - .55 .50
""")
"""The same with categorical features."""
