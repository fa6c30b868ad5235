"""Daytona through its generated async clients; the only importer of them."""
