"""IdIndex: which node a word names, for more words than a table in memory could hold."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.table import equals

_WHOLE = r"^(0|[1-9]\d{0,17})$"
_WORD = np.uint64(1) << np.uint64(63)  # set in the key of a word that is no number


class IdIndex:
    """Eight bytes a node: a whole number is its own key, any other word has a 63-bit hash of itself."""

    def __init__(self, keys: npt.NDArray[np.uint64]):
        self.plain = bool((keys == np.arange(len(keys), dtype=np.uint64)).all())
        self.order = np.empty(0, np.int64) if self.plain else np.argsort(keys, kind="stable")
        self.keys = keys if self.plain else keys[self.order]

    def __call__(self, words: Any) -> npt.NDArray[np.int64]:
        """The nodes that some words name, −1 where there is none or the word is blank: long [n]."""
        wanted = key(words)
        if self.plain:
            return np.where(wanted < len(self.keys), wanted, np.uint64(2**64 - 1)).astype(np.int64)
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where((self.keys[place] == wanted) & ~equals(words, ""), self.order[place], -1)

    def again(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Nodes whose id an earlier node has, and that node."""
        if self.plain:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        fresh = np.ones(len(self.keys), bool)
        np.not_equal(self.keys[1:], self.keys[:-1], out=fresh[1:])
        first = self.order[np.flatnonzero(fresh)][np.cumsum(fresh) - 1]
        return self.order[~fresh], first[~fresh]


def key(words: Any) -> npt.NDArray[np.uint64]:
    """What a word is looked up by: uint64 [n]."""
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
