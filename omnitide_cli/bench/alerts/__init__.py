"""`omnitide bench alerts`."""
