"""Schemas that nobody has declared, or not wholly: what is estimated of them privately, and at which cost."""
