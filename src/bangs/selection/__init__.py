"""Which nodes to adopt."""
