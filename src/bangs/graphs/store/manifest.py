"""The manifest of a store: the list of its arrays, with their sizes and checksums."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bangs.errors import DataUnavailable, InvalidInput
from bangs.utils.files import digest, json_value, parse, read_regular_file, to_dataclass

FILE = "manifest.json"
KIND = "bangs graph"
VERSION = 1
MAX_MANIFEST_BYTES = 64 * 2**20
MAX_NODES = 2**31 - 1  # neighbours are stored as int32

_SIZES = {"int8": 1, "uint8": 1, "float16": 2, "int32": 4, "float32": 4, "int64": 8}


@dataclass(frozen=True)
class Array:
    """One file of numbers, little-endian and in C order."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * _SIZES[self.dtype]


@dataclass(frozen=True)
class Manifest:
    """The sizes of a stored graph and the arrays that hold it.

    Arrays: `in.pointers` and `in.nodes`, the edges by target in CSR form; `in.weights` and `in.sums` if edges have
    weights; the same under `out`, by source, if the graph is directed; `features`; `labels`, −1 = unknown; `split`,
    one row per split: 0 = none, 1 = train, 2 = val, 3 = test; `ids.bytes` and `ids.ends` if nodes have names.
    """

    nodes: int
    edges: int  # entries of the adjacency; an undirected edge is two
    features: int
    classes: tuple[str, ...]
    arrays: Mapping[str, Array]
    directed: bool = False
    weighted: bool = False
    encoding: Mapping[str, Any] | None = None  # how columns became features, if the graph came from tables
    notes: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """The size of all arrays."""
        return sum(array.bytes for array in self.arrays.values())

    @property
    def digest(self) -> str:
        """The sha256 of the manifest, which includes the checksum of every file."""
        return digest(json_value(asdict(self), "manifest"))

    def text(self) -> str:
        """The content of manifest.json; the digest in `seal` shows that bangs wrote it."""
        content = {"kind": KIND, "version": VERSION, "seal": self.digest, **json_value(asdict(self), "manifest")}
        return json.dumps(content, indent=1)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a store; every size is checked against the files before anything is mapped."""
    manifest, _ = _read(folder)
    _check(folder, manifest)
    return manifest


def sealed_arrays(folder: Path) -> list[str]:
    """The names of the arrays of a store; raises if bangs did not write the manifest. Its files may be damaged."""
    manifest, seal = _read(folder)
    if seal != manifest.digest:
        raise InvalidInput(f"the seal in '{folder / FILE}' is missing or does not match")
    return list(manifest.arrays)


def _read(folder: Path) -> tuple[Manifest, Any]:
    """The manifest of a store, and its seal."""
    try:
        content = parse(read_regular_file(folder / FILE, MAX_MANIFEST_BYTES), str(folder / FILE))
    except FileNotFoundError as error:
        raise DataUnavailable(f"'{folder}' is not a store: it has no {FILE}; make one with `bangs convert`") from error
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise InvalidInput(f"'{folder / FILE}' is not the manifest of a graph; make a store with `bangs convert`")
    if content.get("version") != VERSION:
        raise InvalidInput(
            f"'{folder}' is a store of version {content.get('version')!r}, this bangs reads version {VERSION}; "
            "convert the graph again"
        )
    try:
        return to_dataclass(Manifest, content), content.get("seal")
    except ValueError as error:
        raise InvalidInput(f"'{folder / FILE}' is damaged ({error}); convert the graph again") from error


def _check(folder: Path, manifest: Manifest) -> None:
    nodes, edges = manifest.nodes, manifest.edges
    if not 1 <= nodes <= MAX_NODES or manifest.features < 1:
        raise InvalidInput(
            f"'{folder}' must hold 1 to {MAX_NODES:,} nodes with at least one feature, "
            f"got {nodes:,} and {manifest.features:,}"
        )
    # the allowed types and the shape of every array; -1 is any size
    expected: dict[str, tuple[str, tuple[int, ...]]] = {}
    for side in ("in", "out") if manifest.directed else ("in",):
        expected |= {f"{side}.pointers": ("int64", (nodes + 1,)), f"{side}.nodes": ("int32", (edges,))}
        if manifest.weighted:
            expected |= {f"{side}.weights": ("float32", (edges,)), f"{side}.sums": ("float32", (nodes,))}
    expected |= {"features": ("float32 or float16", (nodes, manifest.features)), "labels": ("int32", (nodes,))}
    if "split" in manifest.arrays:
        expected["split"] = ("int8", (-1, nodes))
    if "ids.bytes" in manifest.arrays:
        expected |= {"ids.bytes": ("uint8", (-1,)), "ids.ends": ("int64", (nodes,))}
    if unexpected := sorted(expected.keys() ^ manifest.arrays.keys()):
        what = "is missing" if unexpected[0] in expected else "is unknown"
        raise InvalidInput(f"array '{unexpected[0]}' of '{folder}' {what}; convert the graph again")
    for name, (dtypes, shape) in expected.items():
        array = manifest.arrays[name]
        fits = len(array.shape) == len(shape) and all(
            side in (-1, actual) for side, actual in zip(shape, array.shape, strict=True)
        )
        if array.dtype not in dtypes.split(" or ") or not fits:
            raise InvalidInput(
                f"array '{name}' of '{folder}' must be {dtypes} of shape {list(shape)}, "
                f"got {array.dtype} of shape {list(array.shape)}; convert the graph again"
            )
        path = folder / f"{name}.bin"
        if not path.is_file() or path.is_symlink():
            raise InvalidInput(f"'{path}' is missing or not a plain file; convert the graph again")
        if (size := path.stat().st_size) != array.bytes:
            raise InvalidInput(f"'{path}' must have {array.bytes:,} bytes, it has {size:,}; convert the graph again")
