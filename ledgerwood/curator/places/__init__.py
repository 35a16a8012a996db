"""Rows that lie in several processes: on the workers of a Dask cluster. docs/explanation/places.md#clusters."""
