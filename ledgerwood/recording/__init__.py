"""The one interface between the library and its verifiers: points at which draws, releases and choices are observed.

`points` is what the library's own code passes; `opening` is for `ledgerwood.verification` alone. There is nothing here
for a trainer to use, and nothing is recorded unless a verification asks for it, in its own thread or task.
"""
