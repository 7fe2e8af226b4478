"""`omnitide bench calibrate`."""
