"""Search for neighbouring data sets that exceed a stated sensitivity."""
