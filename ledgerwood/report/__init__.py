"""The output of the command line, and the runs that produce it."""
