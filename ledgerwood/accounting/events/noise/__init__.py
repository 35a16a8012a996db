"""Additive noise: one law a module."""
