"""Views of a table for the evaluators of queries: its public shape, and the arrays of the valid rows."""
