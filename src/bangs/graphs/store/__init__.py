"""Store: a graph on disk, larger than memory if need be."""

from bangs.graphs.store.converting import convert_from
from bangs.graphs.store.made import Synthetic
from bangs.graphs.store.manifest import Manifest, is_store
from bangs.graphs.store.mapping import mapped, release
from bangs.graphs.store.opening import Store, StoredGraph
from bangs.graphs.store.owned import read_own
from bangs.graphs.store.writing import Writer

__all__ = [
    "Manifest",
    "Store",
    "StoredGraph",
    "Synthetic",
    "Writer",
    "convert_from",
    "is_store",
    "mapped",
    "read_own",
    "release",
]
