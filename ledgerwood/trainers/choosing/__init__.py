"""Choosing among models privately: cross-validation, grid search, private search."""
