"""Accounting: events, their prices, budgets, filters and the ledger. Pure mathematics: no rows, no randomness."""
