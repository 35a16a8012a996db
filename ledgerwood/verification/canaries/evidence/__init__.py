"""From the scores of canaries to bounds, and what an attack could have found."""
