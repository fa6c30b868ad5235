"""What the engine expects of the outside: protocols and the error taxonomy, no I/O of their own."""
