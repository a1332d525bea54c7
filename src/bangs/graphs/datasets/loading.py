"""Load the graph of a named dataset, an .npz file or a store."""

import os
import sys
from collections.abc import Collection
from pathlib import Path

from torch_geometric.data import Data

from bangs.errors import BangsError, DataUnavailable, InvalidInput, UnknownName
from bangs.graphs.datasets.download import download
from bangs.graphs.datasets.urls import DATASETS, Dataset
from bangs.graphs.npz import read_graph
from bangs.graphs.store import Store, is_store


def load(name: str | Path, folder: Path | None = None) -> Data:
    """The graph of a dataset, of NAME.npz in the data folder, or of a path to an .npz file or a store.

    Files are searched in `folder` (or the folder that BANGS_DATA names), then in the user's cache. If they are in
    neither, they are downloaded to the cache. The data folder is never written to. A store of more than 1 GiB is
    mapped, not read.
    """
    path = Path(name)
    if is_store(path):
        store = Store.open(path)
        return store.whole() if store.fits else store
    if path.suffix == ".npz" and path.is_file():
        return read_graph(path)
    key = str(name).lower().replace("-", "_").removesuffix(".npz")
    if key in DATASETS:
        dataset = DATASETS[key]
        data = dataset.read(_locate(dataset, folder))
        data.num_classes = dataset.classes  # declared, not counted, so that test labels do not decide it
        return data
    files = npz_files(folder)
    if key not in files or len(path.parts) > 1:
        raise _no_graph(path, {*DATASETS, *files})
    return read_graph(files[key])


def npz_files(folder: Path | None = None) -> dict[str, Path]:
    """The files NAME.npz in the data folder, by name."""
    folder = data_folder(folder)
    files = [] if folder is None else sorted(folder.glob("*.npz"))  # of a missing folder: none
    return {file.stem.lower().replace("-", "_"): file for file in files}


def data_folder(folder: Path | None = None) -> Path | None:
    """The folder given, or the one BANGS_DATA names, or None."""
    named = os.environ.get("BANGS_DATA") if folder is None else folder
    return Path(named) if named else None


def cache_folder() -> Path:
    """The folder of downloads."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "bangs"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bangs"


def _locate(dataset: Dataset, folder: Path | None) -> Path:
    """A folder that holds the dataset's files."""
    data = data_folder(folder)
    cache = cache_folder() / dataset.folder
    for candidate in (data / dataset.folder if data else None, cache):
        if candidate is not None and (_holds(candidate, dataset.files) or _holds(candidate, dataset.instead)):
            return candidate
    for file, remote in dataset.files.items():
        if (cache / file).is_file():
            continue
        try:
            download(remote, cache / file)
        except DataUnavailable as error:
            candidate = data or Path("$BANGS_DATA")
            raise DataUnavailable(
                f"dataset '{dataset.name}' is not on this machine and {error}. "
                f"Put {', '.join(dataset.instead or dataset.files)} into {candidate / dataset.folder} or {cache}; "
                f"the source is {dataset.source}"
            ) from error
    return cache


def _holds(folder: Path, files: Collection[str]) -> bool:
    return len(files) > 0 and all((folder / file).is_file() for file in files)


def _no_graph(path: Path, known: Collection[str]) -> BangsError:
    """The error for a path or name that is not a graph."""
    if path.is_dir():
        return InvalidInput(
            f"'{path}' is a folder, but not a store; `bangs fit` reads tables, `bangs convert` makes a store of them"
        )
    if path.exists():
        return InvalidInput(f"'{path}' is neither an .npz file nor a store; `bangs convert` makes a store of tables")
    if path.suffix == ".npz" or len(path.parts) > 1:
        remedy = f"give the path of an .npz file or one of {', '.join(sorted(known))}"
        return DataUnavailable(f"{path} does not exist; {remedy}")
    return UnknownName("dataset", str(path), known)
