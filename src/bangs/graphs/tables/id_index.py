"""Look up nodes by their ids, with eight bytes of memory for each node."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

_INTEGER = r"^(0|[1-9]\d{0,17})$"
_HASHED = np.uint64(1) << np.uint64(63)  # this bit marks the key of an id that is not an integer
_BLANK = pd.util.hash_array(np.array([""], dtype=object), categorize=False)[0] | _HASHED


class IdIndex:
    """Maps ids to nodes. The key of an integer is the integer itself, the key of any other id is a 63-bit hash."""

    def __init__(self, keys: npt.NDArray[np.uint64]):
        self.consecutive = bool((keys == np.arange(len(keys), dtype=np.uint64)).all())
        self.order = np.empty(0, np.int64) if self.consecutive else np.argsort(keys, kind="stable")
        self.keys = keys if self.consecutive else keys[self.order]

    def __call__(self, ids: Any) -> npt.NDArray[np.int64]:
        """The node with each id, −1 if there is none or the id is blank: long [n]."""
        keys = id_keys(ids)
        if self.consecutive:
            return np.where(keys < len(self.keys), keys, np.uint64(2**64 - 1)).astype(np.int64)
        position = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where((self.keys[position] == keys) & (keys != _BLANK), self.order[position], -1)

    def extended(self, keys: npt.NDArray[np.uint64]) -> "IdIndex":
        """The index with the keys of more nodes appended."""
        by_node = np.empty_like(self.keys)
        by_node[np.arange(len(by_node)) if self.consecutive else self.order] = self.keys
        return IdIndex(np.concatenate([by_node, keys]))

    def unambiguous(self, ids: Any) -> npt.NDArray[np.int64]:
        """The only node with each id, −1 if there is none or several: long [n]."""
        nodes = self(ids)
        ambiguous = np.zeros(len(self.keys) + 1, bool)
        ambiguous[self.repeats()[1]] = True
        return np.where(ambiguous[nodes], -1, nodes)

    def repeats(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The nodes that repeat the id of an earlier node, sorted, and that earlier node; blank ids are skipped."""
        if self.consecutive:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        is_first = np.ones(len(self.keys), bool)
        np.not_equal(self.keys[1:], self.keys[:-1], out=is_first[1:])
        first = self.order[np.flatnonzero(is_first)][np.cumsum(is_first) - 1]
        nodes = self.order[~is_first & (self.keys != _BLANK)]
        by_node = np.argsort(nodes)
        return nodes[by_node], first[~is_first & (self.keys != _BLANK)][by_node]


def without_trailing_zeros(cells: Any) -> Any:
    """The ids with 1000.0 written 1000; some programs write integers as floats."""
    return pc.replace_substring_regex(cells, r"^(\d+)\.0+$", r"\1")


def id_keys(ids: Any) -> npt.NDArray[np.uint64]:
    """The keys of ids: uint64 [n]."""
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    is_number = np.asarray(pc.match_substring_regex(ids, _INTEGER))
    keys = np.empty(len(is_number), np.uint64)
    numbers = ids if is_number.all() else ids.filter(pa.array(is_number))
    keys[is_number] = np.asarray(pc.cast(numbers, pa.int64())).astype(np.uint64)
    if not is_number.all():
        others = np.array(ids.filter(pa.array(~is_number)).to_pylist(), dtype=object)
        keys[~is_number] = pd.util.hash_array(others, categorize=False) | _HASHED
    return keys
