"""What leaving out unchanged pictures saves, and what it costs in answers."""
