"""`omnitide bench soak`."""
