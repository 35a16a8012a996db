"""For tests of mechanisms of one's own: assertions, tripwires, a pytest plugin."""
