"""What a person at a terminal sees: plain text and the dashboard."""
