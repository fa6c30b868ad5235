"""Models of the IssueSandbox resource: the only source of the CustomResourceDefinition."""
