"""`omnitide bench latency`."""
