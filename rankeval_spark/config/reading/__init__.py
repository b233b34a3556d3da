"""From YAML and overrides to a validated config, or to all faults of it at once."""
