"""What may be asked of rows: one statistic a module, with its sensitivity."""
