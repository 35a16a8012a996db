"""Privacy costs of events: Rényi divergences, Gaussian privacy, composed losses, and conversions between them."""
