"""Exact random draws, in integers: bits, deviates, laws and their inversion."""
