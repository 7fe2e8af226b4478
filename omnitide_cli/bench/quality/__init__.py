"""`omnitide bench quality`."""
