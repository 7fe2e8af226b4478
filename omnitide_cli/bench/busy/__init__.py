"""`omnitide bench busy`."""
