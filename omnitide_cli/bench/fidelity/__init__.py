"""`omnitide bench fidelity`."""
