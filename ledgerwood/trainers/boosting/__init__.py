"""The recommended trees: features by what earlier trees released, candidates bought, all else by a public rule."""
