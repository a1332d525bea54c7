"""The only place where weights are learned."""
