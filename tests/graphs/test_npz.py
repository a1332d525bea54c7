"""Graphs in .npz files: valid ones are read, and every error has its message."""

import contextlib
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bangs.errors import DataUnavailable, InvalidInput, OutOfMemory
from bangs.graphs import safe_numpy_files
from bangs.graphs.datasets.loading import load
from bangs.graphs.npz import read_graph
from bangs.graphs.safe_numpy_files import read_npy, read_npz

N = 5
SOUND: dict[str, Any] = {
    "edge_index": np.array([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]], np.int32),
    "y": np.array([0, 1, 1, 0, -1]),
    "x_data": np.array([1, 2, 3], np.float32),
    "x_indices": np.array([0, 2, 1], np.int32),
    "x_indptr": np.array([0, 2, 2, 3, 3, 3], np.int32),
    "x_shape": np.array([N, 3]),
    "train_mask": np.eye(N, dtype=bool)[0],
    "val_mask": np.eye(N, dtype=bool)[1],
    "test_mask": np.eye(N, dtype=bool)[2],
}


def saved(folder: Path, **changes: Any) -> Path:
    """A file of the sound arrays with changes; None leaves an array out."""
    arrays = {name: array for name, array in {**SOUND, **changes}.items() if array is not None}
    np.savez_compressed(folder / "graph.npz", **arrays)
    return folder / "graph.npz"


def test_a_valid_file_becomes_a_graph(tmp_path: Path) -> None:
    data = read_graph(saved(tmp_path))
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.x.layout == torch.sparse_csr
    assert data.x.to_dense().tolist() == [[1, 0, 2], [0, 0, 0], [0, 3, 0], [0, 0, 0], [0, 0, 0]]
    assert data.y.tolist() == [0, 1, 1, 0, -1]
    assert data.train_mask.tolist() == [True, False, False, False, False]
    assert data.num_nodes == N


def test_edges_given_in_one_direction_are_read_in_both(tmp_path: Path) -> None:
    data = read_graph(saved(tmp_path, edge_index=np.array([[0, 0, 3], [1, 1, 2]])))
    assert data.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]


def test_weights_of_repeats_add_up_and_of_opposites_the_larger_counts(tmp_path: Path) -> None:
    edges, weight = np.array([[0, 0, 1, 3, 4], [1, 1, 0, 2, 4]]), np.array([1, 1.5, 2, 0.25, 9])
    data = read_graph(saved(tmp_path, edge_index=edges, edge_weight=weight))
    assert data.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert data.edge_weight.tolist() == [2.5, 2.5, 0.25, 0.25]
    assert data.edge_weight.dtype == torch.float32


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, bool])
def test_dense_features_are_read_in_any_order_and_number(tmp_path: Path, order: Any, dtype: Any) -> None:
    x = np.asarray(np.arange(10).reshape(N, 2), dtype=dtype, order=order)
    data = read_graph(saved(tmp_path, x=x))
    assert data.x.dtype == torch.float32
    assert data.x.tolist() == x.astype(float).tolist()
    data.x += 1  # what is read may be written to


def test_a_graph_may_have_no_features_no_masks_and_no_edges(tmp_path: Path) -> None:
    bare = dict.fromkeys(("x_data", "x_indices", "x_indptr", "x_shape", "train_mask", "val_mask", "test_mask"))
    data = read_graph(saved(tmp_path, edge_index=np.empty((2, 0), np.int64), **bare))
    assert data.get("x") is None
    assert data.get("train_mask") is None
    assert data.edge_index.shape == (2, 0)


def test_several_splits_are_kept(tmp_path: Path) -> None:
    masks = {name: np.tile(SOUND[name][:, None], 10) for name in ("train_mask", "val_mask", "test_mask")}
    assert read_graph(saved(tmp_path, **masks)).val_mask.shape == (N, 10)


def test_arrays_of_other_names_are_not_read(tmp_path: Path) -> None:
    assert read_graph(saved(tmp_path, extra=np.array([object()], dtype=object))).num_nodes == N


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"edge_index": None}, "has no array 'edge_index'"),
        ({"y": None}, "has no array 'y'"),
        (
            {"edge_index": np.zeros((3, 2), int)},
            r"'edge_index' of .* must be integers of shape \[2, E\], got int64 \[3, 2\]",
        ),
        ({"edge_index": np.zeros((2, 2))}, r"must be integers of shape \[2, E\], got float64"),
        (
            {"edge_index": np.array([[0, 1], [1, 5]])},
            r"edge 1 of .* joins nodes \[1, 5\], but nodes are numbered 0 … 4",
        ),
        ({"edge_index": np.array([[-1], [0]])}, r"edge 0 of .* joins nodes \[-1, 0\]"),
        ({"edge_weight": np.ones(4)}, r"'edge_weight' of .* must have shape \[5\], got float64 \[4\]"),
        ({"edge_weight": np.array([1, np.nan, 1, 1, 1])}, "'edge_weight' of .* must hold finite float32 numbers"),
        ({"edge_weight": np.array([1, -2, 1, 1, 1])}, "'edge_weight' of .* must hold numbers from 0, got -2"),
        ({"y": np.zeros((N, 2), int)}, r"'y' of .* must be integers of shape \[N\]"),
        ({"y": np.zeros(N)}, "'y' of .* must be integers"),
        ({"y": np.zeros(0, int)}, "'y' of .* must be integers"),
        ({"y": np.array([0, 1, -2, 0, 0])}, "got values from -2 to 1"),
        ({"y": np.full(N, -1)}, "got values from -1 to -1"),
        ({"y": np.array([0, 1, 10**12, 0, 0])}, "fewer classes than its 5 nodes"),
        ({"x": np.zeros((4, 2))}, r"'x' of .* must have shape \[5, F\]"),
        ({"x": np.zeros(N)}, r"'x' of .* must have shape \[5, F\]"),
        ({"x": np.zeros((N, 0))}, r"'x' of .* must have shape \[5, F\]"),
        ({"x": np.array([[np.nan]] * N)}, "'x' of .* must hold finite float32 numbers"),
        ({"x_data": np.array([1, np.inf, 2])}, "'x_data' of .* must hold finite float32 numbers"),
        ({"x_shape": None}, "has 'x_data' but not 'x_shape'"),
        ({"x_shape": np.array([6, 3])}, r"'x_shape' of .* must be \(5, F\)"),
        ({"x_shape": np.array([N, 10**12])}, "must ask for 1 … 10000000 columns, got 1000000000000"),
        ({"x_indptr": np.array([0, 3])}, r"the row pointers .* rise from 0"),
        ({"x_indptr": np.array([0, 2, 1, 3, 3, 3])}, "the row pointers of .* rise from 0 to its 3 entries"),
        ({"x_indptr": np.array([0, 2, 2, 3, 3, 9])}, "the row pointers of .* rise from 0 to its 3 entries"),
        ({"x_data": np.ones(2)}, "'x_data' and 'x_indices' of .* must be of one length"),
        ({"x_indices": np.array([0, 2, 3])}, "the column numbers of .* must be 0 … 2, got 0 … 3"),
        ({"val_mask": None}, "has train_mask and test_mask only"),
        ({"val_mask": np.zeros(N, int)}, r"'val_mask' of .* must be bool \[5\] or \[5, S\], got int64"),
        ({"val_mask": np.zeros((N, 2), bool)}, "the masks of .* must share one shape"),
        ({"val_mask": SOUND["train_mask"]}, "the masks of .* must be disjoint"),
        ({"y": np.array(["a"] * N)}, "array 'y' of .* must hold numbers or booleans"),
    ],
)
def test_every_error_has_its_message(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        read_graph(saved(tmp_path, **changes))


def header(shape: tuple[int, ...], dtype: str = "<f4", fortran: bool = False) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": fortran, "shape": shape})
    return file.getvalue()


def test_a_header_that_claims_too_much_is_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "graph.npz", "w") as archive:
        archive.writestr("y.npy", header((10**12,), "<i8") + b"\0" * 64)
        archive.writestr("edge_index.npy", header((2, 0), "<i8"))
    with pytest.raises(InvalidInput, match=r"'y' of .* claims shape \(1000000000000,\) .* it is refused"):
        read_graph(tmp_path / "graph.npz")
    (tmp_path / "big.npy").write_bytes(header((10**6, 10**6)))
    with pytest.raises(InvalidInput, match=r"big.npy claims shape \(1000000, 1000000\)"):
        read_npy(tmp_path / "big.npy")


def test_a_bomb_is_refused_by_what_it_unpacks_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_numpy_files, "MAX_BYTES", 2**20)
    path = saved(tmp_path, x=np.zeros((N, 2**18), np.float32))
    assert path.stat().st_size < 2**15
    with pytest.raises(InvalidInput, match=r"unpacks to .* GiB, more than the .* allowed"):
        read_npz(path, ("x",))


def never(*_: object) -> None:
    raise AssertionError("the arrays were unpacked")


@pytest.mark.parametrize("suffix", ["npz", "npy"])
def test_what_memory_cannot_hold_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    x = np.zeros((N, 2**18), np.float32)
    path = saved(tmp_path, x=x) if suffix == "npz" else tmp_path / "x.npy"
    np.save(tmp_path / "x.npy", x)
    monkeypatch.setattr(safe_numpy_files, "available_memory", lambda: 2 * x.nbytes - 1)
    monkeypatch.setattr(safe_numpy_files, "_read", never)
    with pytest.raises(OutOfMemory, match=r"needs twice that; 0.0 GiB of memory are free.*bangs convert"):
        read_npz(path, ("x",)) if suffix == "npz" else read_npy(path)
    assert safe_numpy_files.map_npy(tmp_path / "x.npy").shape == x.shape


@pytest.mark.parametrize(
    "changes",
    [
        {"x": np.zeros((4, 2**18))},
        {"train_mask": np.zeros((N + 1, 2**18), bool)},
        {"edge_weight": np.zeros(2**18)},
        {"x_data": np.zeros(2**18)},
    ],
)
def test_arrays_that_do_not_fit_together_are_refused_before_they_are_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    monkeypatch.setattr(safe_numpy_files, "_read", never)
    with pytest.raises(InvalidInput, match="must"):
        read_graph(saved(tmp_path, **changes))


def test_a_pipe_or_a_device_is_refused_and_a_link_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    monkeypatch.setenv("BANGS_DATA", str(tmp_path))
    for read in (
        lambda: read_npz(tmp_path / "pipe.npz", ("x",)),
        lambda: read_npy(Path("/dev/zero")),
        lambda: load("pipe"),
    ):
        with pytest.raises(InvalidInput, match="must be a regular file"):
            read()
    (tmp_path / "link.npz").symlink_to(saved(tmp_path))
    assert read_graph(tmp_path / "link.npz").num_nodes == N


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidInput, match="objects and text are not read"):
        read_npy(tmp_path / "object.npy")


@pytest.mark.parametrize("content", [b"", b"no zip at all", b"PK\x03\x04 and then nothing"])
def test_a_file_that_is_not_a_zip_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "graph.npz").write_bytes(content)
    with pytest.raises(InvalidInput, match="is not a valid"):
        read_graph(tmp_path / "graph.npz")


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    content = saved(tmp_path).read_bytes()
    for length in range(0, len(content), 97):
        (tmp_path / "half.npz").write_bytes(content[:length])
        with pytest.raises(InvalidInput):
            read_graph(tmp_path / "half.npz")


def test_a_flipped_bit_is_noticed_or_harmless(tmp_path: Path) -> None:
    content = saved(tmp_path).read_bytes()
    random = np.random.default_rng(0)
    for position in random.integers(0, len(content), 200):
        broken = bytearray(content)
        broken[position] ^= 1 << random.integers(8)
        (tmp_path / "bit.npz").write_bytes(broken)
        with contextlib.suppress(InvalidInput):
            assert read_graph(tmp_path / "bit.npz").num_nodes == N


def test_what_is_no_array_and_a_missing_file_get_different_errors(tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("hello, this is text")
    with pytest.raises(InvalidInput, match="is not a numpy array"):
        read_npy(tmp_path / "text.npy")
    with pytest.raises(DataUnavailable, match="cannot be read"):
        read_npy(tmp_path / "missing.npy")
    with pytest.raises(DataUnavailable, match="cannot be read"):
        read_npz(tmp_path / "missing.npz", ("x",))


def test_an_array_that_ends_early_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short.npy").write_bytes(header((20,)) + b"\0" * 70)
    with pytest.raises(InvalidInput, match="ends after 70 of 80 bytes"):
        read_npy(tmp_path / "short.npy")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format_is_read(tmp_path: Path, version: tuple[int, int]) -> None:
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, np.arange(6).reshape(2, 3), version=version)
    assert read_npy(tmp_path / "a.npy").tolist() == [[0, 1, 2], [3, 4, 5]]
