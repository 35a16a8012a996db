"""Tools for tests of your own mechanisms: assertions, tripwires, a pytest plugin."""
