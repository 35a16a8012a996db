"""Audits as text, pages and files."""
