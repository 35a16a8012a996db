"""Events known by their worst case: pure differential privacy, bounded range, and choices made from them."""
