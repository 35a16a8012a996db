"""Bounds of a plan's cost from both sides, in floats, by code that shares nothing with `ledgerwood.accounting`.

An event's node becomes a pair of finitely many outputs (pair.py, leaves.py, profiles.py, events.py); plans of fresh
draws are added up on a lattice (pooling.py, composed.py); points.py and divergences.py answer in the currencies of the
filters. docs/explanation/ledger.md#verification.
"""
