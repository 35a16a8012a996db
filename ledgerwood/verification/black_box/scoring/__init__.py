"""Scores of outputs: learned, fitted and chosen on draws of their own."""
