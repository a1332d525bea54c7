"""Owned: a store as a person's own graph, for the commands that read one whole."""

from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs import custom
from bangs.graphs.custom.encoding import Encoding
from bangs.graphs.store.manifest import is_store
from bangs.graphs.store.opening import WHOLE, Store
from bangs.types import Split


def read_own(path: Path, *, encoding: Encoding | None = None, whole: bool = True, **options: Any) -> custom.OwnGraph:
    """The graph of a folder of tables, an .npz file or a store; `options` are those of `custom.read`.

    A store was read when it was converted: of the options only the encoding counts, which must be the store's own.
    Where the graph need not be `whole`, one of more than 1 GiB stays on the disk: its data are the `Store`.
    """
    if not is_store(path):
        return custom.read(path, encoding=encoding, **options)
    store = Store.open(path)
    manifest = store.manifest
    if whole and not store.fits:
        raise InvalidInput(
            f"'{path}' holds {manifest.bytes / 2**30:.1f} GiB, and this command reads a graph whole, up to "
            f"{WHOLE >> 30} GiB; use `bangs run --dataset {path} --batch-size 1024`, which reads it piece by piece"
        )
    plain = Encoding(array=manifest.features, classes=manifest.classes, directed=manifest.directed)
    own = plain if manifest.encoding is None else Encoding.from_dict(manifest.encoding)
    if encoding is not None and (own.columns, own.array) != (encoding.columns, encoding.array):
        raise InvalidInput(
            f"the columns of '{path}' became features in another way than those the model was fitted with; "
            "convert its tables again with --like and the store or folder of the fit"
        )
    if encoding is not None:
        store = store.relabelled(_renumbered(store.y, manifest.classes, encoding.classes, path))
    elif not (store.y >= 0).any():
        raise InvalidInput(f"no node of '{path}' has a label; convert tables that have some")
    data, split = _in_memory(store) if store.fits else (store, None)
    classes = list(manifest.classes if encoding is None else encoding.classes)
    notes = [*manifest.notes, f"{path.name}: read from a store of {manifest.bytes / 2**20:,.1f} MiB"]
    return custom.OwnGraph(data, store.ids(), classes, own, split, notes)


def _in_memory(store: Store) -> tuple[Data, Split | None]:
    """The whole graph, and its split beside it."""
    data = store.whole()
    masks = [data.get(name) for name in ("train_mask", "val_mask", "test_mask")]
    if masks[0] is None:
        return data, None
    for name in ("train_mask", "val_mask", "test_mask"):
        del data[name]
    return data, Split(*(mask.T if mask.dim() == 2 else mask[None] for mask in masks))


def _renumbered(y: torch.Tensor, names: tuple[str, ...], wanted: tuple[str, ...], path: Path) -> torch.Tensor:
    """Class numbers as the model counts them: long [N]."""
    strange = [name for number, name in enumerate(names) if name not in wanted and bool((y == number).any())]
    if strange:
        raise InvalidInput(f"label '{strange[0]}' of '{path}' is none of the model's classes {', '.join(wanted)}")
    number = torch.tensor([wanted.index(name) if name in wanted else -1 for name in names] or [-1])
    return torch.where(y >= 0, number[y.clamp(min=0)], -1)
