"""Record a fit and replay it on neighbouring data: only the exact values below the noise may change."""
