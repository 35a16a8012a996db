"""What the command line prints, and the runs that produce it."""
