"""What a session looks like on a terminal: a state, a pure function from it to a screen, a thread that shows it."""
