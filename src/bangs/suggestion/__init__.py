"""Suggestions: which nodes to label next, and why."""
