"""What the documentation's build adds to Sphinx: cards, formulas without a script, a page for each estimator."""
