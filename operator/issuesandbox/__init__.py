"""The IssueSandbox operator: one GitHub issue, one Daytona sandbox, one declared truth."""
