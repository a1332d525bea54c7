"""Labelling: a page on which a person labels nodes, and the file that keeps the answers."""
