"""The types that all parts share, and their random streams, metrics and checks."""
