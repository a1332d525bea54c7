"""Graphs: tables, stores, datasets, splits, sparse matrices and PageRank."""
