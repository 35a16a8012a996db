"""Outputs of any kind as rows of numbers, by rules learned on their own draws."""
