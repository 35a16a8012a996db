"""What may be asked of a table's columns without a tree."""
