"""DPBoost: boosting with private splits and leaves, in ensembles over disjoint rows."""
