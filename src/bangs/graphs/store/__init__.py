"""Store: a graph on disk, larger than memory if need be."""

from bangs.graphs.store.converting import convert_from
from bangs.graphs.store.made import Synthetic
from bangs.graphs.store.manifest import Manifest, is_store
from bangs.graphs.store.mapping import mapped, release
from bangs.graphs.store.names import Names, known_names, place_of
from bangs.graphs.store.opening import Store, StoredGraph, check_edges
from bangs.graphs.store.owned import read_own
from bangs.graphs.store.whereabouts import Whereabouts
from bangs.graphs.store.writing import Writer

__all__ = [
    "Manifest",
    "Names",
    "Store",
    "StoredGraph",
    "Synthetic",
    "Whereabouts",
    "Writer",
    "check_edges",
    "convert_from",
    "is_store",
    "known_names",
    "mapped",
    "place_of",
    "read_own",
    "release",
]
