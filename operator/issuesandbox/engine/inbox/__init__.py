"""GitHub in: find the resource of an issue and bring it up to date."""
