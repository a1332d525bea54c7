"""IdIndex: which node has an id, in eight bytes a node."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

_WHOLE = r"^(0|[1-9]\d{0,17})$"
_WORD = np.uint64(1) << np.uint64(63)  # set in the key of a word that is no number
_BLANK = pd.util.hash_array(np.array([""], dtype=object), categorize=False)[0] | _WORD


class IdIndex:
    """The nodes by their ids: a whole number is its own key, the key of any other word is a hash of 63 bits."""

    def __init__(self, keys: npt.NDArray[np.uint64]):
        self.plain = bool((keys == np.arange(len(keys), dtype=np.uint64)).all())
        self.order = np.empty(0, np.int64) if self.plain else np.argsort(keys, kind="stable")
        self.keys = keys if self.plain else keys[self.order]

    def __call__(self, words: Any) -> npt.NDArray[np.int64]:
        """The node that has each id, −1 where none has it or the word is blank: long [n]."""
        wanted = key(words)
        if self.plain:
            return np.where(wanted < len(self.keys), wanted, np.uint64(2**64 - 1)).astype(np.int64)
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where((self.keys[place] == wanted) & (wanted != _BLANK), self.order[place], -1)

    def extended(self, keys: npt.NDArray[np.uint64]) -> "IdIndex":
        """The index with more nodes after these."""
        mine = np.empty_like(self.keys)
        mine[np.arange(len(mine)) if self.plain else self.order] = self.keys
        return IdIndex(np.concatenate([mine, keys]))

    def unambiguous(self, words: Any) -> npt.NDArray[np.int64]:
        """The node that alone has each id, −1 where none or several have it: long [n]."""
        found = self(words)
        twice = np.zeros(len(self.keys) + 1, bool)
        twice[self.repeats()[1]] = True
        return np.where(twice[found], -1, found)

    def repeats(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Nodes whose id an earlier node has, in their order, and that node; blank ids are no repeats."""
        if self.plain:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        fresh = np.ones(len(self.keys), bool)
        np.not_equal(self.keys[1:], self.keys[:-1], out=fresh[1:])
        first = self.order[np.flatnonzero(fresh)][np.cumsum(fresh) - 1]
        nodes = self.order[~fresh & (self.keys != _BLANK)]
        by_node = np.argsort(nodes)
        return nodes[by_node], first[~fresh & (self.keys != _BLANK)][by_node]


def without_zeros(words: Any) -> Any:
    """The words with 1000.0 written 1000, as programs that know floats only write whole numbers."""
    return pc.replace_substring_regex(words, r"^(\d+)\.0+$", r"\1")


def key(words: Any) -> npt.NDArray[np.uint64]:
    """The keys by which ids are looked up: uint64 [n]."""
    if isinstance(words, pa.ChunkedArray):
        words = words.combine_chunks()
    whole = np.asarray(pc.match_substring_regex(words, _WHOLE))
    found = np.empty(len(whole), np.uint64)
    numbers = words if whole.all() else words.filter(pa.array(whole))
    found[whole] = np.asarray(pc.cast(numbers, pa.int64())).astype(np.uint64)
    if not whole.all():
        texts = np.array(words.filter(pa.array(~whole)).to_pylist(), dtype=object)
        found[~whole] = pd.util.hash_array(texts, categorize=False) | _WORD
    return found
