"""Which models OmniTide knows, what surrounds what in their prompts, and where their files lie."""
