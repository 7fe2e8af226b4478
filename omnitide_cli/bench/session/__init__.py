"""`omnitide bench session`."""
