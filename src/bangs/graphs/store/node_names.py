"""NodeNames: the names of the nodes of a store, read when needed."""

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
from bangs.graphs.tables.id_index import IdIndex, key

BLOCK = 2**16  # names read at once


class NodeNames(Sequence[str]):
    """The names of N nodes, or their numbers if they have none. The store is opened when the first name is needed."""

    def __init__(self, where: StoreReference):
        self.where = where

    def __len__(self) -> int:
        return self.where.nodes

    @overload
    def __getitem__(self, node: int) -> str: ...
    @overload
    def __getitem__(self, node: slice) -> list[str]: ...
    def __getitem__(self, node: int | slice) -> str | list[str]:
        if isinstance(node, slice):
            return [self[place] for place in range(*node.indices(len(self)))]
        place = range(len(self))[node]
        return self._read(place, place + 1)[0]

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks():
            yield from block

    def find(self, word: str) -> int | None:
        """The first node with this name; None if there is none."""
        if not self._named:
            plain = word.isascii() and word.isdecimal() and len(word) < 20 and str(int(word)) == word
            return int(word) if plain and int(word) < len(self) else None
        return next((node for node, name in enumerate(self) if name == word), None)

    def known(self, words: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Which words are names of nodes: bool [n]. Memory: eight bytes for each node."""
        keys = np.concatenate([key(pa.array(block, pa.string())) for block in self._blocks()])
        texts = [word.encode("utf-8", "replace").decode() for word in words]  # pyarrow refuses lone surrogates
        return np.asarray(IdIndex(keys)(pa.array(texts, pa.string())) >= 0)

    @property
    def _named(self) -> bool:
        return "ids.bytes" in self.where.store.manifest.arrays

    def _blocks(self) -> Iterator[list[str]]:
        for start in range(0, len(self), BLOCK):
            yield self._read(start, min(start + BLOCK, len(self)))

    def _read(self, start: int, end: int) -> list[str]:
        """The names of the nodes from `start` to before `end`."""
        if not self._named:
            return [str(node) for node in range(start, end)]
        store = self.where.store
        body, ends = store.array("ids.bytes"), store.array("ids.ends")
        marks = np.concatenate([ends[start - 1 : start] if start else [0], ends[start:end]]).astype(np.int64)
        whole = marks[-1] == len(body) if end == len(ends) else marks[-1] <= len(body)
        if marks[0] < 0 or (np.diff(marks) < 0).any() or not whole:
            raise store.damaged("ids.ends", "names that do not follow each other")
        block = body[marks[0] : marks[-1]].tobytes()
        places = (marks - marks[0]).tolist()
        try:
            words = [block[one:two].decode() for one, two in pairwise(places)]
        except UnicodeDecodeError as error:
            raise store.damaged("ids.bytes", "a name that is not UTF-8") from error
        release(body)
        return words


def place_of(word: str, names: Any) -> int:
    """The number of the node with this name, in `NodeNames` or an array."""
    found = names.find(word) if isinstance(names, NodeNames) else next(iter(np.flatnonzero(names == word)), None)
    if found is None:
        raise InvalidInput(f"no node is called {quoted(word)}; names look like {listed(list(names[:3]))}")
    return int(found)


def known_names(words: Iterable[str], names: "NodeNames | Iterable[str]") -> npt.NDArray[np.bool_]:
    """Which words are among the names: bool [n]."""
    if isinstance(names, NodeNames):
        return names.known(words)
    seen = set(names)
    return np.array([word in seen for word in words], dtype=bool)
