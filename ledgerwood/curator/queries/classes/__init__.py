"""Queries of targets of classes: rows of each class, and the gradients of all classes at once."""
