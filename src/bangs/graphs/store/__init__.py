"""Store: a graph on disk, of any size."""

from bangs.graphs.store.convert import convert_from
from bangs.graphs.store.manifest import Manifest
from bangs.graphs.store.node_names import NodeNames, known_names, place_of
from bangs.graphs.store.store_folder import is_store
from bangs.graphs.store.store_reference import StoreReference
from bangs.graphs.store.stored_graph import Store, StoredGraph, check_edges, mapped, release
from bangs.graphs.store.user_graph import read_own

__all__ = [
    "Manifest",
    "NodeNames",
    "Store",
    "StoreReference",
    "StoredGraph",
    "check_edges",
    "convert_from",
    "is_store",
    "known_names",
    "mapped",
    "place_of",
    "read_own",
    "release",
]
