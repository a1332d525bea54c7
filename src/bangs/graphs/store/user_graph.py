"""Read a user's graph from tables, an .npz file or a store."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from bangs.errors import InvalidInput
from bangs.graphs import tables
from bangs.graphs.splits import MASKS, every_public
from bangs.graphs.store.node_names import NodeNames
from bangs.graphs.store.store_folder import is_store
from bangs.graphs.store.store_reference import StoreReference
from bangs.graphs.store.stored_graph import Store
from bangs.graphs.tables.diagnostics import Diagnostics
from bangs.graphs.tables.fitted_encoding import Encoding
from bangs.graphs.tables.labels import check_two_labels
from bangs.graphs.tables.read_options import ReadOptions


def read_user_graph(path: Path, *, encoding: Encoding | None = None, **options: Any) -> tables.UserGraph:
    """The graph of a folder of tables, an .npz file or a store; `options` are `ReadOptions`.

    A store was read when it was converted, and an .npz file has no columns: options about columns are refused. A store
    must have been converted with the given encoding. A store of more than 1 GiB stays on disk: `data` is the `Store`,
    and ids are read when needed.
    """
    from_store = is_store(path)
    if from_store or path.suffix == ".npz":
        _refuse_unused_options(path, from_store, options)
    if not from_store:
        return tables.read(path, encoding=encoding, **options)
    store = Store.open(path)
    manifest = store.manifest
    plain = Encoding(
        array=manifest.features, classes=manifest.classes, directed=manifest.directed, weighted=manifest.weighted
    )
    stored = plain if manifest.encoding is None else Encoding.from_dict(manifest.encoding)
    if stored.columns and options.get("scale", "auto") != "auto":
        raise InvalidInput(f"the columns of '{path}' were scaled when the store was made; leave --scale out")
    if encoding is not None:
        _check_encoding(stored, encoding, path)
        store = store.relabelled(_renumbered(store.y, manifest.classes, encoding.classes, path))
    elif not (store.y >= 0).any():
        raise InvalidInput(f"no node of '{path}' has a label; convert tables that have some")
    elif options.get("two_labels") or not store.fits:
        _check_classes(store, path)
    names = NodeNames(StoreReference.of(store))
    classes = list(manifest.classes if encoding is None else encoding.classes)
    size = f"of {manifest.bytes / 2**20:,.1f} MiB"
    if not store.fits:
        notes = [*manifest.notes, f"{path.name}: a store {size}, which stays on disk"]
        return tables.UserGraph(store, names, classes, stored, every_public(store), notes)
    data = store.whole()
    for name in MASKS:
        if name in data:
            del data[name]
    notes = [*manifest.notes, f"{path.name}: read from a store {size}"]
    return tables.UserGraph(data, np.array(list(names), dtype=object), classes, stored, every_public(store), notes)


def _refuse_unused_options(path: Path, from_store: bool, options: dict[str, Any]) -> None:
    """Raises if an option has no effect on this source, though it has one on a folder of tables."""
    allowed = {"--scale"} if from_store else {"--scale", "--directed"}  # the classifier scales arrays
    unused = " and ".join(option for option in ReadOptions(**options).given if option not in allowed)
    if unused and from_store:
        raise InvalidInput(f"'{path}' is a store, read when it was made; give {unused} to `bangs convert`")
    if unused:
        raise InvalidInput(f"'{path}' has no columns to name or fill; leave {unused} out, or give a folder of tables")


def _check_encoding(stored: Encoding, fitted: Encoding, path: Path) -> None:
    """Raises if a store was converted in another way than the fitted graph was read."""
    if (stored.columns, stored.array) != (fitted.columns, fitted.array):
        reason = f"the columns of '{path}' became features in another way than those the model was fitted with"
    elif stored.directed != fitted.directed:
        ours, theirs = ("directed", "undirected") if stored.directed else ("undirected", "directed")
        reason = f"the edges of '{path}' are {ours}, the model was fitted with {theirs} ones"
    elif stored.weighted != fitted.weighted:
        ours, theirs = ("weights", "no weights") if stored.weighted else ("no weights", "weights")
        reason = f"the edges of '{path}' have {ours}, the model was fitted with {theirs}"
    else:
        return
    raise InvalidInput(f"{reason}; convert it again with --like and the store or folder of the fit")


def _check_classes(store: Store, path: Path) -> None:
    """Raises if classes have one label only, and no split says which nodes are for validation."""
    split, labelled, diagnostics = every_public(store), store.y >= 0, Diagnostics(str(path))
    if split is None or not split.val.any():
        train = labelled if split is None else split.train.any(0)
        check_two_labels(store.y.numpy(), train.numpy(), store.manifest.classes, None, diagnostics.of(path.name))
    diagnostics.raise_any()


def _renumbered(y: torch.Tensor, names: tuple[str, ...], classes: tuple[str, ...], path: Path) -> torch.Tensor:
    """The labels y, numbers of `names`, as numbers of the model's `classes`: long [N]."""
    unknown = [name for number, name in enumerate(names) if name not in classes and bool((y == number).any())]
    if unknown:
        raise InvalidInput(f"unknown label '{unknown[0]}' in '{path}'; the model knows {', '.join(classes)}")
    renumbered = torch.tensor([classes.index(name) if name in classes else -1 for name in names] or [-1])
    return torch.where(y >= 0, renumbered[y.clamp(min=0)], -1)
