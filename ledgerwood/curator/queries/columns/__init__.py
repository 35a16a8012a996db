"""Queries on the columns of a table, without a tree."""
