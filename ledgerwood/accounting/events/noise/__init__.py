"""Additive noise: one module for each distribution."""
