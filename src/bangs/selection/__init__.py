"""Scores and quotas: which nodes are adopted."""
