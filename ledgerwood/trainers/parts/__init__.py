"""The components that several systems share: splits, leaves, candidates, first scores."""
