"""The common parts of all trainers: estimator, plan, budget, outputs, model files."""
