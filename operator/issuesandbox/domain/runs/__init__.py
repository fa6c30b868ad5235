"""The rules of a run: its limits, what comes next, and what the status says of it. Pure."""
