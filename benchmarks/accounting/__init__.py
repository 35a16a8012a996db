"""Accuracy, tightness and speed of the accounting, side by side with the peers that can be installed."""

import numpy as np

import ledgerwood as lw

ORDERS = (*np.linspace(1.1, 10.9, 99).tolist(), *map(float, range(11, 62)))
"""150 orders, as peers list them; theirs are nearly the same."""


def event(family: str, sampling_rate: float, noise_multiplier: float) -> lw.Event:
    """One release under add-remove, "gaussian" or "laplace", sampled where the rate is below 1."""
    kind = lw.GaussianEvent if family == "gaussian" else lw.LaplaceEvent
    leaf = kind(noise_multiplier=noise_multiplier, adjacency=lw.Adjacency.ADD_REMOVE)
    return lw.PoissonSampled(leaf, sampling_rate=sampling_rate) if sampling_rate < 1.0 else leaf
