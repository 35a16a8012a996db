"""Returns whether noise and choices have the distributions that they are priced by."""
