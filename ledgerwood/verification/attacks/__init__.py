"""Membership attacks and poisoning: what an attacker learns or spoils, never a bound on epsilon."""
