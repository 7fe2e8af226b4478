"""`omnitide bench peers`."""
