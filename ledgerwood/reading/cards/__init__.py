"""Model cards: what a released model is, and what its privacy statement says, for those who did not train it."""
