"""What the operator knows of coding agents: how each is started, read and judged."""
