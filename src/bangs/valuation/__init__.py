"""The information game of candidate nodes and its Banzhaf values."""
