"""Tests that noise and choices have the distributions which accounting assumes."""
