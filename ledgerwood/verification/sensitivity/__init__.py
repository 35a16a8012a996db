"""Search for neighbouring data sets that break a stated sensitivity."""
