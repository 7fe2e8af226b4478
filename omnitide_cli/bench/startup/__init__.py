"""`omnitide bench startup`."""
