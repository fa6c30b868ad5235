"""The machinery around the rules: queue, passes, views. Knows ports, never adapters or kopf."""
