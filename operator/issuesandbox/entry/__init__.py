"""The edges: command line, kopf handlers, HTTP endpoints and the composition root."""
