"""What people and programs see of a session: reads events, formats them, knows nothing else."""
