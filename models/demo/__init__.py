"""The shipped demo model: how it was trained, converted and checked. Run the modules from the repository's root."""
