"""What every trainer is made of: estimator, plan, budget, outputs, model files."""
