"""Tables: a person's own files as a graph; every problem is reported with file, row and way out."""

from bangs.graphs.tables.diagnostics import BadTables
from bangs.graphs.tables.feature_encoding import Categorical, Date, Encoding
from bangs.graphs.tables.read_graph import UserGraph, read
from bangs.graphs.tables.table import Limits

__all__ = [
    "BadTables",
    "Categorical",
    "Date",
    "Encoding",
    "Limits",
    "UserGraph",
    "read",
]
