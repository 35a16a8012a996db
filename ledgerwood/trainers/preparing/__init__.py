"""Steps before a trainer in a pipeline."""
