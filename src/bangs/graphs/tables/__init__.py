"""Read a user's tables as a graph. Every problem is reported with its file, its row and a remedy."""

from bangs.graphs.tables.diagnostics import BadTables
from bangs.graphs.tables.fitted_encoding import Encoding
from bangs.graphs.tables.read_graph import UserGraph, read
from bangs.graphs.tables.table import Limits

__all__ = [
    "BadTables",
    "Encoding",
    "Limits",
    "UserGraph",
    "read",
]
