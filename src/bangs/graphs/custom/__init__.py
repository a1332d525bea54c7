"""Custom: a person's own files as a graph; every complaint names file, row and remedy."""

from bangs.graphs.custom.complaints import BadTables, Complaint
from bangs.graphs.custom.encoding import Categorical, Encoding, Numeric, Structural
from bangs.graphs.custom.reading import OwnGraph, read
from bangs.graphs.custom.tables import Limits
from bangs.graphs.custom.validation import validation_split

__all__ = [
    "BadTables",
    "Categorical",
    "Complaint",
    "Encoding",
    "Limits",
    "Numeric",
    "OwnGraph",
    "Structural",
    "read",
    "validation_split",
]
