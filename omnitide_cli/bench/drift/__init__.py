"""`omnitide bench drift`."""
