"""What `omnitide inspect-kv` shows of a cache."""
