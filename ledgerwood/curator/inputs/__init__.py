"""Values, labels, weights and keys from outside, read one by one by their declared type."""
