"""Graphs on disk, of any size."""

from bangs.graphs.store.convert import convert_from
from bangs.graphs.store.node_names import NodeNames, are_node_names, node_index
from bangs.graphs.store.store_folder import is_store
from bangs.graphs.store.store_reference import StoreReference
from bangs.graphs.store.stored_graph import Store, StoredGraph, check_edges, mapped, release
from bangs.graphs.store.user_graph import read_user_graph

__all__ = [
    "NodeNames",
    "Store",
    "StoreReference",
    "StoredGraph",
    "are_node_names",
    "check_edges",
    "convert_from",
    "is_store",
    "mapped",
    "node_index",
    "read_user_graph",
    "release",
]
