"""Membership attacks and poisoning bounds. None of them is a bound on epsilon."""
