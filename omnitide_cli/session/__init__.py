"""One session from its first unit to its summary: loop, questions, checkpoints, interruption."""
