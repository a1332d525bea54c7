"""Custom: a person's own files as a graph; every complaint names file, row and remedy."""

from bangs.graphs.tables.diagnostics import BadTables, Diagnostic
from bangs.graphs.tables.encoding import Categorical, Encoding, Numeric, Structural
from bangs.graphs.tables.read import OwnGraph, read
from bangs.graphs.tables.table import Limits
from bangs.graphs.tables.validation import validation_split

__all__ = [
    "BadTables",
    "Categorical",
    "Diagnostic",
    "Encoding",
    "Limits",
    "Numeric",
    "OwnGraph",
    "Structural",
    "read",
    "validation_split",
]
