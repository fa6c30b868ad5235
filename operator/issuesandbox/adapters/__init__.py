"""Everything that speaks to the outside world: Kubernetes, Daytona, the clock."""
