"""Datasets by name: read from files, downloaded or generated."""
