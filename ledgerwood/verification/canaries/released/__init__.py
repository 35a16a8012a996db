"""Audits of whatever a fitted model shows: many fits with and without one row."""
