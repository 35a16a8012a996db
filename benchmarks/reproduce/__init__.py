"""Five papers, item by item: what was reproduced, by which command, how far it is from the printed value, and why.

`items` says what an item, a study and a paper are, `judging` turns stored values into a verdict, `results` keeps what
studies found, `pages` writes docs/reproduction, and `papers` has a module or two for each paper.
"""
