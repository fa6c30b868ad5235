"""Kubernetes through plain HTTP: the only own Kubernetes I/O of the operator."""
