"""What the evaluator of a query sees of a table: its public shape, and the arrays of the rows that take part."""
