"""The one seam between the library and whoever checks it: where a draw, a release or a choice can be looked at.

`points` is what the library's own code passes; `opening` is for `ledgerwood.verification` alone. There is nothing here
for a trainer to use, and nothing is recorded unless a verification asks for it, in its own thread or task.
"""
