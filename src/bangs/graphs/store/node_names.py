"""The names of the nodes of a store, read when needed."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bangs.errors import InvalidInput
from bangs.graphs.store.store_reference import StoreReference
from bangs.graphs.store.stored_graph import release
from bangs.graphs.tables.diagnostics import listed, quoted
from bangs.graphs.tables.id_index import IdIndex, id_keys

BLOCK_NAMES = 2**16  # names read at once


class NodeNames(Sequence[str]):
    """The names of N nodes, or their numbers if they have no names. The first access opens the store."""

    def __init__(self, reference: StoreReference):
        self.reference = reference

    def __len__(self) -> int:
        return self.reference.nodes

    @overload
    def __getitem__(self, node: int) -> str: ...
    @overload
    def __getitem__(self, node: slice) -> list[str]: ...
    def __getitem__(self, node: int | slice) -> str | list[str]:
        if isinstance(node, slice):
            return [self[index] for index in range(*node.indices(len(self)))]
        index = range(len(self))[node]
        return self._read(index, index + 1)[0]

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks():
            yield from block

    def find(self, name: str) -> int | None:
        """The first node with this name; None if there is none."""
        if not self._named:
            canonical = name.isascii() and name.isdecimal() and len(name) < 20 and str(int(name)) == name
            return int(name) if canonical and int(name) < len(self) else None
        return next((node for node, node_name in enumerate(self) if node_name == name), None)

    def known(self, names: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Which of the names are names of nodes: bool [n]. Memory: eight bytes for each node."""
        keys = np.concatenate([id_keys(pa.array(block, pa.string())) for block in self._blocks()])
        encodable = [name.encode("utf-8", "replace").decode() for name in names]  # pyarrow refuses lone surrogates
        return np.asarray(IdIndex(keys)(pa.array(encodable, pa.string())) >= 0)

    @property
    def _named(self) -> bool:
        return "ids.bytes" in self.reference.store.manifest.arrays

    def _blocks(self) -> Iterator[list[str]]:
        for start in range(0, len(self), BLOCK_NAMES):
            yield self._read(start, min(start + BLOCK_NAMES, len(self)))

    def _read(self, start: int, end: int) -> list[str]:
        """The names of the nodes from `start` to before `end`."""
        if not self._named:
            return [str(node) for node in range(start, end)]
        store = self.reference.store
        body, ends = store.array("ids.bytes"), store.array("ids.ends")
        ends_from_start = np.concatenate([ends[start - 1 : start] if start else [0], ends[start:end]]).astype(np.int64)
        in_range = ends_from_start[-1] == len(body) if end == len(ends) else ends_from_start[-1] <= len(body)
        if ends_from_start[0] < 0 or (np.diff(ends_from_start) < 0).any() or not in_range:
            raise store.damaged("ids.ends", "names that do not follow each other")
        block = body[ends_from_start[0] : ends_from_start[-1]].tobytes()
        offsets = (ends_from_start - ends_from_start[0]).tolist()
        try:
            names = [block[start_byte:end_byte].decode() for start_byte, end_byte in pairwise(offsets)]
        except UnicodeDecodeError as error:
            raise store.damaged("ids.bytes", "a name that is not UTF-8") from error
        release(body)
        return names


def node_index(name: str, names: Any) -> int:
    """The index of the node with this name, in `NodeNames` or an array."""
    node = names.find(name) if isinstance(names, NodeNames) else next(iter(np.flatnonzero(names == name)), None)
    if node is None:
        raise InvalidInput(f"no node is called {quoted(name)}; names look like {listed(list(names[:3]))}")
    return int(node)


def are_node_names(candidates: Iterable[str], names: "NodeNames | Iterable[str]") -> npt.NDArray[np.bool_]:
    """Which of the candidates are names of nodes: bool [n]."""
    if isinstance(names, NodeNames):
        return names.known(candidates)
    known = set(names)
    return np.array([name in known for name in candidates], dtype=bool)
