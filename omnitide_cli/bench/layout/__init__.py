"""`omnitide bench layout`."""
