"""The queries on rows: one statistic in each module, with its sensitivity."""
