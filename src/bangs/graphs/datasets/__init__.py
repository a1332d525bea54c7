"""Graphs by name: loaded from files, downloaded or made."""
