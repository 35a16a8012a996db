"""The trainings of an audit: rows, canaries, fits and what they release."""
