"""Events on a random sample of the rows."""
