"""A real kube-apiserver and etcd on this machine: found, downloaded or built, started, stopped.

Knows nothing of what is run against the API server.
"""
