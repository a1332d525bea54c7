"""Graphs: files, stores, datasets, splits, sparse matrices and propagation."""
