"""ledgerwood: differential privacy accounting, exact noise, a ledger that re-adds, and private trees."""

__version__ = "0.1.0"
