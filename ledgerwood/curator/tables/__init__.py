"""The rows: in columns, encoded for trees, not declared yet, and the vault of a stream's privacy units."""
