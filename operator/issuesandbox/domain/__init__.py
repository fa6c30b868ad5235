"""Pure rules: what should happen next. Knows no clock, no network, no logging."""
