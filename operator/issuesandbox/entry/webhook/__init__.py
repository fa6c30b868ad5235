"""`issuesandbox webhook`: GitHub's events in, resources out."""
