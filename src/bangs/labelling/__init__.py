"""Labelling: a web page for labelling nodes, and the file of the answers."""
