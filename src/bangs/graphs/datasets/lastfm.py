"""Read LastFM Asia from its original files: friendships, liked artists, countries."""

import io
import json
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from bangs.errors import DataUnavailable, InvalidInput
from bangs.graphs.array_checks import MAX_FEATURES, check_range
from bangs.graphs.edges import undirected

ARCHIVE = "lastfm_asia.zip"
COLUMNS = 128
EDGES, ARTISTS, COUNTRIES = "lastfm_asia_edges.csv", "lastfm_asia_features.json", "lastfm_asia_target.csv"
MAX_BYTES = 2**28  # of one file, unpacked; the largest has 15 million


def read_lastfm(folder: Path) -> Data:
    """The graph of SNAP's archive or of FEATHER's three files: x dense [N, 128], edge_index, y = country.

    The original features are sets of liked artists. How PyG made its 128 columns is not known. Ours are the multi-hot
    matrix of the artists, reduced by a truncated SVD, see `reduced`.
    """
    files = _files(folder)
    y = _countries(files[COUNTRIES], folder / COUNTRIES)
    edges = _table(files[EDGES], folder / EDGES)
    check_range(edges, len(y), f"the users of {folder / EDGES}")
    x = reduced(_artists(files[ARTISTS], len(y), folder / ARTISTS))
    return Data(
        x=torch.from_numpy(x),
        edge_index=undirected(edges[:, 0], edges[:, 1], len(y)).edge_index,
        y=torch.from_numpy(y),
        num_nodes=len(y),
    )


def reduced(matrix: "sp.csr_array[np.float64]", columns: int = COLUMNS, seed: int = 0) -> npt.NDArray[np.float32]:
    """The strongest directions U S of a matrix ≈ U S Vᵀ, scaled by one number to a mean square of one: [N, M].

    M is `columns`, or the matrix's smaller side where that is less. The SVD is the randomised one of Halko et al.,
    2011, with five power iterations, so that the columns are a function of matrix and seed.
    """
    # imported late: it takes a second, and only these files need it
    from sklearn.decomposition import TruncatedSVD

    rank = min(columns, *matrix.shape)
    x = TruncatedSVD(rank, n_iter=5, random_state=seed).fit_transform(sp.csr_matrix(matrix, dtype=np.float64))
    size = np.sqrt(np.mean(x**2))
    return np.ascontiguousarray(x / size if size > 0 else x, dtype=np.float32)


def _files(folder: Path) -> dict[str, bytes]:
    """The contents of the three files, unpacked in memory if they come in the archive; nothing is extracted."""
    names = (EDGES, ARTISTS, COUNTRIES)
    try:
        if all((folder / name).is_file() for name in names):
            return {name: (folder / name).read_bytes() for name in names}
        with ZipFile(folder / ARCHIVE) as archive:
            # SNAP's folder is spelled 'lasftm_asia', so only the last part of a name is compared
            members = {member.filename.rsplit("/", 1)[-1]: member for member in archive.infolist()}
            contents = {}
            for name in names:
                if name not in members:
                    raise InvalidInput(f"{folder / ARCHIVE} has no file {name}")
                if members[name].file_size > MAX_BYTES:
                    raise InvalidInput(f"{name} of {folder / ARCHIVE} unpacks to over {MAX_BYTES} bytes; it is refused")
                contents[name] = archive.read(members[name])
            return contents
    except InvalidInput:
        raise
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise DataUnavailable(f"neither {ARCHIVE} nor {', '.join(names)} can be read from {folder}") from error
    except Exception as error:  # a broken archive may raise any error
        raise InvalidInput(f"{folder / ARCHIVE} is not a valid zip archive: {error}") from error


def _table(raw: bytes, path: Path) -> npt.NDArray[np.int64]:
    if b"\n" not in raw.strip():
        raise InvalidInput(f"{path} must hold a header and at least one row")
    try:
        table = np.loadtxt(io.BytesIO(raw), dtype=np.int64, delimiter=",", skiprows=1, ndmin=2)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{path} must be a table of whole numbers with a header: {error}") from error
    if table.shape[1] != 2:
        raise InvalidInput(f"{path} must have two columns of whole numbers below a header, got {table.shape[1]}")
    return table


def _countries(raw: bytes, path: Path) -> npt.NDArray[np.int64]:
    table = _table(raw, path)
    table = table[np.argsort(table[:, 0], kind="stable")]
    if len(table) < 2 or not np.array_equal(table[:, 0], np.arange(len(table))):
        raise InvalidInput(f"{path} must name each user 0 … N−1 once")
    if not 0 <= table[:, 1].min() <= table[:, 1].max() < len(table):
        raise InvalidInput(f"{path} must number countries 0 … C−1, fewer than its {len(table)} users")
    return np.ascontiguousarray(table[:, 1])


def _artists(raw: bytes, users: int, path: Path) -> "sp.csr_array[np.float64]":
    """Which user likes which artist: multi-hot [users, artists]."""
    try:
        likes: dict[str, Any] = json.loads(raw)
        user = np.fromiter((int(key) for key in likes), np.int64, len(likes))
        counts = np.fromiter((len(artists) for artists in likes.values()), np.int64, len(likes))
        artist = np.fromiter(chain.from_iterable(likes.values()), np.int64, counts.sum())
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"{path} must map each user to a list of artists' numbers: {error}") from error
    check_range(user, users, f"the users of {path}")
    if artist.size == 0 or not 0 <= artist.min() <= artist.max() < MAX_FEATURES:
        raise InvalidInput(f"{path} must number artists 0 … {MAX_FEATURES - 1}")
    shape = (users, int(artist.max()) + 1)
    matrix = sp.coo_array((np.ones(len(artist)), (np.repeat(user, counts), artist)), shape=shape).tocsr()
    matrix.data[:] = 1
    return matrix
