"""DP-XGBoost: candidates from private histograms, private splits by gain, Laplace leaves."""
