"""The officer's dashboard: ledgers, verdicts, models and a calculator as pages of a small server (extra: dashboard)."""
