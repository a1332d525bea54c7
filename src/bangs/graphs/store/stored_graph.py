"""An open store, memory-mapped from disk."""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from typing import IO, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.neighbours import NeighbourLists
from bangs.graphs.splits import MASKS
from bangs.graphs.store.manifest import Manifest, read_manifest
from bangs.utils.files import open_to_read

MAX_BYTES_IN_MEMORY = 2**30  # a larger store stays on disk
MAX_EDGES_AT_ONCE = 2**25  # for a part of a method that needs all edges
BLOCK_BYTES = 2**24  # bytes read at once

_PARTS = {name: part for part, name in enumerate(MASKS, 1)}  # as numbers in the array of splits

# memory maps by address: a tensor does not know its map, and other memory must not be released
_maps: "WeakValueDictionary[int, np.memmap[Any, Any]]" = WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class StoredGraph:
    """A graph without labels whose features and edges stay on disk.

    It replaces a `Data` in a `Task`. Parts that support stores read `x` and `into` piece by piece. For the others
    `edge_index` makes all edges at once, at most 2²⁵.
    """

    x: Tensor  # float32 or float16 [N, F], mapped
    into: NeighbourLists  # A[target, source] by target
    out: NeighbourLists  # the same by source; `into` itself if the graph is undirected
    identity: str  # the store's digest

    @property
    def num_nodes(self) -> int:
        return len(self.into)

    @property
    def edge_index(self) -> Tensor:
        """All edges: long [2, E]."""
        check_edges(len(self.into.nodes))
        self.into.check()
        target = torch.arange(self.num_nodes).repeat_interleave(self.into.pointers.diff())
        return torch.stack([self.into.nodes.long(), target])

    def get(self, name: str, default: Any = None) -> Any:
        """The attribute of that name, as in a `Data`."""
        return self.into.weights if name == "edge_weight" else getattr(self, name, default)

    def to(self, device: torch.device | str) -> "StoredGraph":
        """The graph itself: it stays on disk, and its users move what they read."""
        return self


def check_edges(count: int) -> None:
    """Raises if a stored graph has too many edges for a part that needs all of them at once."""
    if count > MAX_EDGES_AT_ONCE:
        raise InvalidInput(
            f"this part of the method needs all {count:,} edges at once, and a store with more than "
            f"{MAX_EDGES_AT_ONCE:,} is read piece by piece; train with --batch-size and --fanout, on a gcn, graphsage "
            "or sgc, with a calibrator that does not use edges (ets, temperature, vector)"
        )


@dataclass(frozen=True, eq=False)
class Store:
    """An open store; arrays are mapped when they are needed."""

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: Path | str) -> "Store":
        """The store in a folder; only its manifest and the sizes of its files are read."""
        return cls(Path(path), read_manifest(Path(path)))

    @property
    def num_nodes(self) -> int:
        return self.manifest.nodes

    @property
    def num_classes(self) -> int:
        return len(self.manifest.classes)

    @property
    def fits(self) -> bool:
        """Whether it is small enough to be read into memory."""
        return self.manifest.bytes <= MAX_BYTES_IN_MEMORY

    def array(self, name: str) -> npt.NDArray[Any]:
        """One array, mapped; writing to it changes memory only."""
        entry = self.manifest.arrays[name]
        dtype = np.dtype(entry.dtype).newbyteorder("<")
        if entry.bytes == 0:
            return np.empty(entry.shape, dtype)
        return mapped(self.path / f"{name}.bin", dtype, entry.shape, "c")

    @cached_property
    def y(self) -> Tensor:
        """The labels: long [N], −1 = unknown."""
        labels = torch.from_numpy(np.asarray(self.array("labels"), dtype=np.int64))
        if len(labels) and not -1 <= int(labels.min()) <= int(labels.max()) < self.num_classes:
            raise self.damaged("labels", f"a label outside −1 … {self.num_classes - 1}")
        return labels

    def get(self, name: str, default: Any = None) -> Any:
        """Labels and masks, as in a `Data`: bool [N], or [N, S] if there are several splits."""
        if name == "y":
            return self.y
        if name in _PARTS and "split" in self.manifest.arrays:
            parts = torch.from_numpy(np.asarray(self.array("split")) == _PARTS[name])
            return parts[0] if len(parts) == 1 else parts.T
        return default

    def relabelled(self, y: Tensor) -> "Store":
        """The same store with other labels: long [N], or [R, N] if runs have different ones."""
        relabelled = replace(self)
        relabelled.__dict__["y"] = y
        return relabelled

    def keys(self) -> list[str]:
        """The keys whose values identify the graph, as in a `Data`: only its digest."""
        return ["digest"]

    def __getitem__(self, name: str) -> Any:
        if name == "digest":
            return torch.tensor(list(bytes.fromhex(self.manifest.digest)), dtype=torch.uint8)
        return self.get(name)

    def unlabelled(self) -> StoredGraph:
        """The graph without labels."""
        into = self._neighbours("in")
        out = self._neighbours("out") if self.manifest.directed else into
        features = torch.from_numpy(self.array("features"))
        return StoredGraph(features, into, out, self.manifest.digest)

    def whole(self) -> Data:
        """The whole store in memory, as a labelled `Data`."""
        self.verify(checksums=False)
        graph = self.unlabelled()
        data = Data(x=graph.x.float().clone(), edge_index=graph.edge_index, y=self.y, num_nodes=self.num_nodes)
        if graph.into.weights is not None:
            data.edge_weight = graph.into.weights.clone()
        for name in _PARTS:
            if (mask := self.get(name)) is not None:
                data[name] = mask
        return data

    def verify(self, *, checksums: bool = True) -> None:
        """Read everything once; raises if a file was changed or holds invalid numbers."""
        for name, entry in self.manifest.arrays.items() if checksums else ():
            with open_to_read(self.path / f"{name}.bin") as stream:
                checksum = file_digest(stream, "sha256").hexdigest()
            if checksum != entry.sha256:
                raise self.damaged(name, "another checksum than when it was written")
        for side in ("in", "out") if self.manifest.directed else ("in",):
            pointers = self.array(f"{side}.pointers")
            if pointers[0] != 0 or pointers[-1] != self.manifest.edges or (np.diff(pointers) < 0).any():
                raise self.damaged(f"{side}.pointers", f"pointers that do not rise from 0 to {self.manifest.edges:,}")
            for block in _blocks(self.array(f"{side}.nodes")):
                if block.min() < 0 or block.max() >= self.num_nodes:
                    raise self.damaged(f"{side}.nodes", f"a neighbour outside 0 … {self.num_nodes - 1:,}")
        if not all(np.isfinite(block).all() for block in _blocks(self.array("features"))):
            raise self.damaged("features", "NaN or infinity")

    def _neighbours(self, side: str) -> NeighbourLists:
        names = ("pointers", "nodes", "weights", "sums") if self.manifest.weighted else ("pointers", "nodes")
        pointers, *others = (torch.from_numpy(self.array(f"{side}.{name}")) for name in names)
        if int(pointers[0]) != 0 or int(pointers[-1]) != self.manifest.edges:
            raise self.damaged(f"{side}.pointers", f"pointers that do not rise from 0 to {self.manifest.edges:,}")
        return NeighbourLists(pointers, *others)

    def damaged(self, name: str, what: str) -> InvalidInput:
        """The error for a damaged file."""
        return InvalidInput(f"'{self.path / name}.bin' is damaged: it holds {what}; convert the graph again")


def _blocks(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    row = max(int(array[:1].nbytes), 1)
    step = max(BLOCK_BYTES // row, 1)
    for start in range(0, len(array), step):
        yield array[start : start + step]
    release(array)


def mapped(file: Path | IO[bytes], dtype: Any, shape: tuple[int, ...], mode: Any) -> npt.NDArray[Any]:
    """The memory-mapped array of a file."""
    array = np.memmap(file, dtype, mode=mode, shape=shape)
    _maps[array.ctypes.data] = array
    return array


def release(array: Tensor | npt.NDArray[Any]) -> None:
    """Free the pages of a mapped array that are in memory; other arrays are left alone."""
    address = array.untyped_storage().data_ptr() if isinstance(array, Tensor) else array.ctypes.data
    memmap: Any = _maps.get(address)
    if memmap is not None and hasattr(mmap, "MADV_DONTNEED"):
        memmap._mmap.madvise(mmap.MADV_DONTNEED)
