"""A Daytona that runs on one machine: the same API, real processes, faults on request."""
