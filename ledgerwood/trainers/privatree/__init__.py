"""PrivaTree: one decision tree whose splits and labels are chosen privately."""
