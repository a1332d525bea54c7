"""Flickr: small files in GraphSAINT's format, valid and broken."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from bangs.errors import DataUnavailable, InvalidInput
from bangs.graphs import splits
from bangs.graphs.datasets import flickr
from bangs.graphs.datasets.flickr import read_flickr

LINKS = sp.csr_matrix(np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]], np.float64))
FEATURES = np.arange(8, dtype=np.float64).reshape(4, 2)
CLASSES = {"0": 1, "1": 0, "3": 2, "2": 1}
ROLES = {"tr": [0, 1], "va": [2], "te": [3]}


def put(folder: Path, links: Any = LINKS, features: Any = FEATURES, classes: Any = CLASSES, roles: Any = ROLES) -> Path:
    if isinstance(links, dict):
        np.savez(folder / flickr.LINKS, **links)
    else:
        sp.save_npz(folder / flickr.LINKS, links)
    np.save(folder / flickr.FEATURES, features)
    (folder / flickr.CLASSES).write_text(classes if isinstance(classes, str) else json.dumps(classes))
    (folder / flickr.ROLES).write_text(json.dumps(roles))
    return folder


def test_four_files_become_a_graph(tmp_path: Path) -> None:
    data = read_flickr(put(tmp_path))
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.x.dtype == torch.float32
    assert data.x.tolist() == FEATURES.tolist()
    assert data.y.tolist() == [1, 0, 1, 2]
    assert data.role.tolist() == [0, 0, 1, 2]
    assert not splits.has_public(data)


def csr(**changes: Any) -> dict[str, Any]:
    parts = {"indices": LINKS.indices, "indptr": LINKS.indptr, "shape": np.array([4, 4])}
    return {name: part for name, part in {**parts, **changes}.items() if part is not None}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"links": csr(indptr=None)}, "has no array 'indptr'"),
        ({"links": csr(indptr=np.zeros(5))}, "the row pointers and column numbers of .* must be whole numbers"),
        ({"links": csr(shape=np.array([5, 5]))}, "must be a matrix of 4 × 4"),
        ({"links": csr(shape=np.array([10**12, 10**12]))}, "must be a matrix of 4 × 4"),
        ({"links": csr(indptr=np.array([0, 3, 1, 5, 5]))}, "the row pointers of .* rise from 0"),
        ({"links": csr(indices=np.array([0, 1, 2, 3, 4]))}, "the column numbers of .* must be 0 … 3"),
        ({"features": np.zeros(4)}, r"must hold numbers \[N, F\]"),
        ({"features": np.full((4, 2), np.nan)}, "must hold finite numbers"),
        ({"classes": {"0": 1}}, "must give each node 0 … 3 one class"),
        ({"classes": {**CLASSES, "3": -1}}, "must number classes 0 … C−1"),
        ({"classes": {**CLASSES, "3": 10**12}}, "must number classes 0 … C−1"),
        ({"classes": {**CLASSES, "3": [0, 1]}}, "must map each node to one class number"),
        ({"classes": [1, 2]}, "must map each node to one class number"),
        ({"classes": "{"}, "is not JSON"),
        ({"roles": {"tr": [0]}}, "must list the nodes of 'tr', 'va' and 'te'"),
        ({"roles": {**ROLES, "te": [4]}}, "'te' has nodes outside 0 … 3"),
        ({"roles": [1]}, "must list the nodes"),
    ],
)
def test_every_error_has_its_message(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        read_flickr(put(tmp_path, **changes))


def test_a_file_too_large_or_missing_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path)
    monkeypatch.setattr(flickr, "MAX_BYTES", 5)
    with pytest.raises(InvalidInput, match=r"^'.*class_map\.json' must have at most 5 bytes, it has"):
        read_flickr(tmp_path)
    (tmp_path / flickr.CLASSES).unlink()
    with pytest.raises(DataUnavailable, match=r"class_map\.json cannot be read"):
        read_flickr(tmp_path)
