"""Scores of outputs: learned, fitted and chosen on their own draws."""
