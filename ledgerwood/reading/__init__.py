"""Post-processing of released models, which has no privacy cost."""
