"""What may stand before a trainer in a pipeline."""
