"""Read a ledger as a stranger would: its chain, its rules, and the cost of every grant once more, by other code."""
