"""What events cost: Rényi divergences, Gaussian privacy, composed losses, and conversions between them."""
