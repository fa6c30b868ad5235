"""git over HTTP, spoken by the operator itself."""
