"""Privacy losses on a lattice, composed, with bounds on both sides. docs/explanation/pld.md."""
