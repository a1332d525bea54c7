"""Owned: a store as a person's own graph."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from bangs.core.types import Split
from bangs.errors import InvalidInput
from bangs.graphs import tables
from bangs.graphs.splits import MASKS
from bangs.graphs.store.folder import is_store
from bangs.graphs.store.node_names import NodeNames
from bangs.graphs.store.reference import StoreReference
from bangs.graphs.store.stored_graph import Store
from bangs.graphs.tables.diagnostics import Diagnostics
from bangs.graphs.tables.encoding import Encoding
from bangs.graphs.tables.labels import check_enough
from bangs.graphs.tables.options import given


def read_own(path: Path, *, encoding: Encoding | None = None, **options: Any) -> tables.OwnGraph:
    """The graph of a folder of tables, an .npz file or a store; `options` are those of `custom.read`.

    A store was read when it was converted, and an .npz file has no columns: options about columns are refused. Of a
    store the encoding must be its own.
    One of more than 1 GiB stays on the disk: its data are the `Store`, and its ids are read where they are asked for.
    """
    stored = is_store(path)
    if stored or path.suffix == ".npz":
        _refuse(path, stored, options)
    if not stored:
        return tables.read(path, encoding=encoding, **options)
    store = Store.open(path)
    manifest = store.manifest
    plain = Encoding(
        array=manifest.features, classes=manifest.classes, directed=manifest.directed, weighted=manifest.weighted
    )
    own = plain if manifest.encoding is None else Encoding.from_dict(manifest.encoding)
    if encoding is not None:
        _check_alike(own, encoding, path)
        store = store.relabelled(_renumbered(store.y, manifest.classes, encoding.classes, path))
    elif not (store.y >= 0).any():
        raise InvalidInput(f"no node of '{path}' has a label; convert tables that have some")
    else:
        _check_classes(store, path)
    names = NodeNames(StoreReference.of(store))
    classes = list(manifest.classes if encoding is None else encoding.classes)
    size = f"of {manifest.bytes / 2**20:,.1f} MiB"
    if not store.fits:
        notes = [*manifest.notes, f"{path.name}: a store {size}, which stays on the disk"]
        return tables.OwnGraph(store, names, classes, own, _split(store), notes)
    data = store.whole()
    for name in MASKS:
        if name in data:
            del data[name]
    notes = [*manifest.notes, f"{path.name}: read from a store {size}"]
    return tables.OwnGraph(data, np.array(list(names), dtype=object), classes, own, _split(store), notes)


def _refuse(path: Path, stored: bool, options: dict[str, Any]) -> None:
    """Raises where an option would be followed in a folder of tables and not here."""
    idle = " and ".join(option for option in given(options) if stored or option != "--directed")
    if idle and stored:
        raise InvalidInput(f"'{path}' is a store, read when it was made; give {idle} to `bangs convert`")
    if idle:
        raise InvalidInput(f"'{path}' has no columns to name or fill; leave {idle} out, or give a folder of tables")


def _check_alike(own: Encoding, fitted: Encoding, path: Path) -> None:
    """Raises where a store was read in another way than the graph of a fit."""
    told = None
    if (own.columns, own.array) != (fitted.columns, fitted.array):
        told = f"the columns of '{path}' became features in another way than those the model was fitted with"
    elif own.directed != fitted.directed:
        told = f"the edges of '{path}' are {_ways(own)}, the model was fitted with {_ways(fitted)} ones"
    elif own.weighted != fitted.weighted:
        told = f"the edges of '{path}' have {_weights(own)}, the model was fitted with {_weights(fitted)}"
    if told is not None:
        raise InvalidInput(f"{told}; convert it again with --like and the store or folder of the fit")


def _ways(edges: Encoding) -> str:
    return "directed" if edges.directed else "undirected"


def _weights(edges: Encoding) -> str:
    return "weights" if edges.weighted else "no weights"


def _check_classes(store: Store, path: Path) -> None:
    """Raises, with their names, where classes seen once would have to be held for validation."""
    split, known, diagnostics = _split(store), store.y >= 0, Diagnostics(str(path))
    if split is None or not split.val.any():
        train = known if split is None else split.train.any(0)
        check_enough(store.y.numpy(), train.numpy(), store.manifest.classes, None, path.name, diagnostics)
    diagnostics.raise_any()


def _split(store: Store) -> Split | None:
    """The splits that came with a store: bool [S, N]."""
    masks = [store.get(name) for name in MASKS]
    if masks[0] is None:
        return None
    return Split(*(mask.T if mask.dim() == 2 else mask[None] for mask in masks))


def _renumbered(y: torch.Tensor, names: tuple[str, ...], wanted: tuple[str, ...], path: Path) -> torch.Tensor:
    """Class numbers as the model counts them: long [N]."""
    strange = [name for number, name in enumerate(names) if name not in wanted and bool((y == number).any())]
    if strange:
        raise InvalidInput(f"label '{strange[0]}' of '{path}' is none of the model's classes {', '.join(wanted)}")
    number = torch.tensor([wanted.index(name) if name in wanted else -1 for name in names] or [-1])
    return torch.where(y >= 0, number[y.clamp(min=0)], -1)
