"""Datasets by name: which folders are searched, in which order, and the error if files are missing."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bangs.errors import DataUnavailable, UnknownName
from bangs.graphs import splits
from bangs.graphs.datasets import lastfm, loading
from tests.graphs.datasets import test_flickr, test_lastfm
from tests.graphs.datasets.server import Server, serving


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No data folder, a cache of its own, and no patience."""
    monkeypatch.delenv("BANGS_DATA", raising=False)
    monkeypatch.setattr(loading, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)
    return tmp_path


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Server]:
    """LastFM and Flickr in small, on loopback."""
    source = tmp_path / "source"
    source.mkdir()
    test_lastfm.zipped(source, test_lastfm.contents())
    test_flickr.put(source)
    with serving(Server({path.name: path.read_bytes() for path in source.iterdir()})) as running:
        yield running


def served(name: str, url: str) -> loading.Dataset:
    """The dataset with its files at another address."""
    dataset = loading.DATASETS[name]
    files = {file: replace(remote, url=f"{url.rstrip('/')}/{file}") for file, remote in dataset.files.items()}
    return replace(dataset, files=files)


def small(name: str, server: Server) -> loading.Dataset:
    """The dataset with the small files, and their checksums."""
    dataset = served(name, server.url)
    return replace(
        dataset,
        files={
            file: replace(remote, sha256=remote.sha256 and hashlib.sha256(server.files[file]).hexdigest())
            for file, remote in dataset.files.items()
        },
    )


@pytest.mark.parametrize("name", ["lastfm_asia", "flickr"])
def test_missing_files_are_downloaded_once_and_cached(
    name: str, web: Server, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "DATASETS", {name: small(name, web)})
    first = loading.load(name)
    requests = len(web.requests)
    assert requests == len(loading.DATASETS[name].files)
    second = loading.load(name)
    assert len(web.requests) == requests
    assert first.num_nodes == 4
    assert torch.equal(first.x, second.x)
    assert sorted(os.listdir(alone / "cache" / loading.DATASETS[name].folder)) == sorted(loading.DATASETS[name].files)


def test_a_tampered_archive_is_not_kept(web: Server, alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "DATASETS", {"lastfm_asia": served("lastfm_asia", web.url)})
    # the real LastFM's checksum does not fit the small archive
    with pytest.raises(DataUnavailable, match=r"hash of downloaded file .* does not match the known hash"):
        loading.load("lastfm_asia")
    assert os.listdir(alone / "cache" / "LastFMAsia" / "raw") == []


def test_without_a_network_the_error_says_which_files_to_put_where(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Server()) as gone:
        monkeypatch.setattr(loading, "DATASETS", {"cora": served("cora", gone.url)})
    with pytest.raises(DataUnavailable) as caught:
        loading.load("cora", alone / "data")
    sentence = str(caught.value)
    assert "dataset 'cora' is not on this machine" in sentence
    assert (
        f"Put {', '.join(loading.DATASETS['cora'].files)} into {alone / 'data' / 'Cora' / 'raw'} or "
        f"{alone / 'cache' / 'Cora' / 'raw'}" in sentence
    )
    assert "https://github.com/kimiyoung/planetoid" in sentence


def test_the_data_folder_comes_before_the_cache_and_is_never_written_to(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, cached = alone / "data" / "Flickr" / "raw", alone / "cache" / "Flickr" / "raw"
    for folder, scale in ((given, 1), (cached, 10)):
        folder.mkdir(parents=True)
        test_flickr.put(folder, features=test_flickr.FEATURES * scale)
    for folder in (given, given.parent, given.parent.parent):
        folder.chmod(0o555)
    try:
        monkeypatch.setenv("BANGS_DATA", str(alone / "data"))
        assert loading.load("flickr").x.max() == 7
        assert loading.load("flickr", alone / "elsewhere").x.max() == 70
        assert loading.load("Flickr", alone / "data").x.max() == 7
    finally:
        for folder in (given, given.parent, given.parent.parent):
            folder.chmod(0o755)


def test_lastfm_can_be_read_from_three_files(alone: Path) -> None:
    folder = alone / "data" / "LastFMAsia" / "raw"
    folder.mkdir(parents=True)
    test_lastfm.plain(folder, test_lastfm.contents())
    assert loading.load("lastfm-asia", alone / "data").num_classes == 18  # as declared, whatever labels are there
    assert set(loading.DATASETS["lastfm_asia"].instead) == {lastfm.EDGES, lastfm.ARTISTS, lastfm.COUNTRIES}


def tiny(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, edge_index=np.array([[0], [1]]), y=np.array([0, 1, 1]), x=np.eye(3))
    return path


def test_any_npz_is_loaded_by_path_or_by_name(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny(alone / "data" / "My-Graph.npz")
    monkeypatch.setenv("BANGS_DATA", str(alone / "data"))
    for name in (path, str(path), "my-graph", "my_graph", "My-Graph.npz"):
        assert loading.load(name).num_nodes == 3
    assert loading.npz_files() == {"my_graph": path}
    assert loading.npz_files(alone / "missing") == {}
    monkeypatch.chdir(alone / "data")
    monkeypatch.delenv("BANGS_DATA")
    assert loading.load("My-Graph.npz").num_nodes == 3


def test_a_missing_path_is_a_clear_error(alone: Path) -> None:
    with pytest.raises(DataUnavailable, match=r"does not exist; give the path of .* or one of citeseer"):
        loading.load(alone / "missing.npz")


def test_an_unknown_name_gets_a_suggestion(alone: Path) -> None:
    tiny(alone / "data" / "cora_ml.npz")
    with pytest.raises(UnknownName, match=r"dataset 'cora-mlx' is unknown; did you mean 'cora_ml'\? Known: citeseer"):
        loading.load("cora-mlx", alone / "data")


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, alone: Path) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(alone))
    monkeypatch.setattr("sys.platform", "linux")
    assert loading.cache_folder() == alone / "bangs"
    monkeypatch.setattr("sys.platform", "darwin")
    assert loading.cache_folder().parts[-3:] == ("Library", "Caches", "bangs")


def test_the_embedded_graph_needs_nothing() -> None:
    data = loading.load("synthetic")
    assert (data.num_nodes, data.num_edges, data.x.shape[1], data.num_classes) == (2708, 10562, 1433, 7)


def test_every_dataset_has_a_description_and_addresses() -> None:
    for name, dataset in loading.DATASETS.items():
        assert dataset.name == name
        assert dataset.description
        assert dataset.classes > 1
        for remote in dataset.files.values():
            assert remote.url.startswith("https://")
            assert remote.sha256 or remote.starts


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("BANGS_DATA"), reason="BANGS_DATA names no folder with the real graphs")
@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes"),
    [
        ("amazon_computers", 13752, 491722, 767, 10),
        ("coauthor_physics", 34493, 495924, 8415, 5),
        ("lastfm_asia_large", 2488, 15476, 600, 5),
        ("lastfm_asia_nofeat", 7624, 55612, None, 18),
        ("actor", 7600, 53318, 932, 5),
    ],
)
def test_the_real_npz_graphs_are_what_is_known_of_them(
    name: str, nodes: int, edges: int, features: int | None, classes: int
) -> None:
    data = loading.load(name, REAL)
    assert (data.num_nodes, data.num_edges, int(data.y.max()) + 1) == (nodes, edges, classes)
    assert (data.get("x") is None) if features is None else (data.x.shape == (nodes, features))
    assert splits.has_public(data) == (name == "actor")
    assert splits.default(data, [0, 1]).train.shape == (2, nodes)


REAL = Path(os.environ.get("BANGS_DATA") or ".")
