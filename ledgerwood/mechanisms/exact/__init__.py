"""Exact random draws, in integers: bits, deviates, distributions and their inversion."""
