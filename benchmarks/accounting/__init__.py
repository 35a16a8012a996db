"""Accuracy, tightness and speed of the accounting, side by side with the peers that can be installed."""
