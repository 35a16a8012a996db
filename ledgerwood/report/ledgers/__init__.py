"""Ledgers as text, pages and files."""
