"""Units in, events and answers out: the only room that touches native code and llama.cpp."""
