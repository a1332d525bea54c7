"""Sorting: edges in any order and number, as rows of links, with memory bounded by a setting.

Every edge is the number target · N + source. A chunk of them is sorted and cut along ranges of targets, and each piece
is appended to the file of its range; at the end one range after the other is read, sorted, freed of repeats and
written. All files are written and read from front to back.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bangs.files import explained
from bangs.graphs.store.writing import Strip, Writer

RANGES = 256

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class LinkSorter:
    """Gathers edges; `write` turns them into the arrays of one side of a store.

    Weights of repeated edges add up (`merge="sum"`), or the largest counts (`merge="max"`).
    """

    def __init__(self, writer: Writer, side: str, nodes: int, *, weighted: bool = False, merge: str = "sum"):
        self.writer, self.side, self.nodes, self.weighted, self.merge = writer, side, nodes, weighted, merge
        self.width = -(-nodes // min(RANGES, nodes))
        self.repeats = 0
        self.taken = 0
        self._keys = [_Pile(writer.scratch(f"{side}.{place}.keys")) for place in range(-(-nodes // self.width))]
        self._values = [_Pile(writer.scratch(f"{side}.{place}.values")) for place in range(len(self._keys))]

    def add(self, target: npt.NDArray[Any], source: npt.NDArray[Any], weight: Floats | None = None) -> None:
        """More edges, at most a few million at once."""
        keys = target.astype(np.int64) * self.nodes + source
        self.taken += len(keys)
        if weight is None:
            keys.sort()
        else:
            order = np.argsort(keys, kind="stable")
            keys, weight = keys[order], weight[order]
        cuts = np.searchsorted(keys, np.arange(len(self._keys) + 1) * (self.width * self.nodes))
        for place, (start, end) in enumerate(pairwise(cuts)):
            if end > start:
                self._keys[place].append(keys[start:end])
                if weight is not None:
                    self._values[place].append(weight[start:end])

    def write(self) -> int:
        """The arrays `pointers`, `nodes` and perhaps `weights` and `sums` of this side; the number of edges."""
        strips = {"pointers": self.writer.strip(f"{self.side}.pointers", "int64")}
        strips["nodes"] = self.writer.strip(f"{self.side}.nodes", "int32")
        if self.weighted:
            strips["weights"] = self.writer.strip(f"{self.side}.weights", "float32")
            strips["sums"] = self.writer.strip(f"{self.side}.sums", "float32")
        strips["pointers"].append(np.zeros(1, np.int64))
        edges = 0
        for place, pile in enumerate(self._keys):
            keys, weight = pile.take(np.int64), self._values[place].take(np.float32) if self.weighted else None
            first = place * self.width
            rows = min(self.width, self.nodes - first)
            edges = self._write_range(strips, keys, weight, first, rows, edges)
        return edges

    def _write_range(
        self, strips: dict[str, Strip], keys: Ints, weight: Floats | None, first: int, rows: int, before: int
    ) -> int:
        if weight is None:
            keys.sort()
        else:
            order = np.argsort(keys, kind="stable")
            keys, weight = keys[order], weight[order]
        fresh = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
        places = np.flatnonzero(fresh)
        self.repeats += len(keys) - len(places)
        if weight is not None and len(places):
            merge = np.add if self.merge == "sum" else np.maximum
            weight = merge.reduceat(weight, places)
        keys = keys[places]
        target, source = np.divmod(keys, self.nodes)
        counts = np.bincount(target - first, minlength=rows)
        strips["pointers"].append(before + np.cumsum(counts))
        strips["nodes"].append(source)
        if weight is not None:
            strips["weights"].append(weight)
            strips["sums"].append(np.bincount(target - first, weight, minlength=rows))
        return before + len(keys)


class _Pile:
    """A file that numbers are appended to, read once and removed."""

    def __init__(self, path: Path):
        self.path = path

    def append(self, numbers: npt.NDArray[Any]) -> None:
        with explained(self.path), self.path.open("ab") as file:
            file.write(np.ascontiguousarray(numbers).data.cast("B"))

    def take(self, dtype: Any) -> npt.NDArray[Any]:
        if not self.path.exists():
            return np.empty(0, dtype)
        numbers = np.fromfile(self.path, dtype=dtype)
        self.path.unlink()
        return numbers
