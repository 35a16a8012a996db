"""The framework for federated private boosting of Maddock et al. (2022)."""
