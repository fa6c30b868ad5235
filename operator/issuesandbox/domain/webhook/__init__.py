"""GitHub in: what an event means for a resource, as pure rules."""
