"""What a set of nodes is worth."""
