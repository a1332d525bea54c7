"""Explain: why a node has the label it has."""
