"""LastFM Asia: small files of the original format, plain, zipped and broken."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from bangs.errors import DataUnavailable, InvalidInput
from bangs.graphs.datasets import lastfm
from bangs.graphs.datasets.lastfm import read_lastfm, reduced

EDGES = "node_1,node_2\n0,1\n1,2\n3,2\n"
LIKES = {"0": [0, 1], "1": [1], "2": [4, 5], "3": [5, 4, 4]}
COUNTRIES = "id,target\n0,0\n1,0\n3,2\n2,1\n"


def contents(edges: str = EDGES, likes: object = LIKES, countries: str = COUNTRIES) -> dict[str, str]:
    text = likes if isinstance(likes, str) else json.dumps(likes)
    return {lastfm.EDGES: edges, lastfm.ARTISTS: text, lastfm.COUNTRIES: countries}


def zipped(folder: Path, files: dict[str, str], inside: str = "lasftm_asia/") -> Path:
    with zipfile.ZipFile(folder / lastfm.ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"{inside}{name}", content)
    return folder


def plain(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize("put", [zipped, plain])
def test_friends_countries_and_artists_become_a_graph(tmp_path: Path, put: object) -> None:
    assert callable(put)
    data = read_lastfm(put(tmp_path, contents()))
    assert data.edge_index.tolist() == [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]
    assert data.y.tolist() == [0, 0, 1, 2]
    assert data.x.shape == (4, 4)
    # users 2 and 3 like the same artists, and share none with the others
    torch.testing.assert_close(data.x[2], data.x[3])
    assert abs(float(data.x[0] @ data.x[2])) < 1e-5


def test_names_that_climb_out_of_the_archive_write_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    read_lastfm(zipped(folder, contents(), inside="../../"))
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [lastfm.ARCHIVE]


def test_a_bomb_is_refused_by_what_it_unpacks_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lastfm, "MAX_BYTES", 10_000)
    with pytest.raises(InvalidInput, match="unpacks to over 10000 bytes; it is refused"):
        read_lastfm(zipped(tmp_path, contents(edges=EDGES + "0,1\n" * 5000)))


def test_a_reduced_matrix_keeps_its_inner_products() -> None:
    random = np.random.default_rng(0)
    low = random.standard_normal((40, 3)) @ random.standard_normal((3, 30))
    x = reduced(sp.csr_array(low), columns=8).astype(np.float64)
    assert x.shape == (40, 8)
    assert np.mean(x**2) == pytest.approx(1, rel=1e-5)
    products, expected = x @ x.T, low @ low.T
    scale = expected[0, 0] / products[0, 0]
    np.testing.assert_allclose(products * scale, expected, atol=1e-4)


def test_the_columns_are_a_function_of_matrix_and_seed() -> None:
    matrix = sp.csr_array(sp.random(300, 200, 0.1, random_state=np.random.RandomState(0)))
    assert np.array_equal(reduced(matrix, 5, seed=0), reduced(matrix, 5, seed=0))


def test_the_columns_are_nearly_those_of_the_exact_decomposition() -> None:
    random = np.random.default_rng(1)
    matrix = sp.csr_array((random.random((200, 150)) < np.linspace(0.02, 0.5, 150)).astype(float))
    left, strength, _ = np.linalg.svd(matrix.toarray(), full_matrices=False)
    x = reduced(matrix, 6).astype(np.float64)
    strengths = np.linalg.norm(x, axis=0)
    np.testing.assert_allclose(strengths / strengths[0], strength[:6] / strength[0], rtol=0.02)
    assert abs(float(left[:, 0] @ x[:, 0])) == pytest.approx(strengths[0], rel=1e-4)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (contents(edges="node_1,node_2\n0,9\n"), "the users of .* must be 0 … 3"),
        (contents(edges="node_1,node_2\n0,x\n"), "must be a table of whole numbers"),
        (contents(edges="node_1\n0\n"), "must have two columns of whole numbers below a header, got 1"),
        (contents(edges="node_1,node_2\n"), "must hold a header and at least one row"),
        (contents(countries="id,target\n0,0\n2,1\n"), "must name each user 0 … N−1 once"),
        (contents(countries=f"id,target\n0,0\n1,{10**15}\n"), "must number countries 0 … C−1"),
        (contents(countries="id,target\n0,0\n1,-1\n"), "must number countries 0 … C−1"),
        (contents(likes={"9": [1]}), "the users of .* must be 0 … 3"),
        (contents(likes={"0": [10**12]}), "must number artists"),
        (contents(likes={"0": [-1]}), "must number artists"),
        (contents(likes={}), "must number artists"),
        (contents(likes=[1, 2]), "must map each user to a list"),
        (contents(likes={"0": 3}), "must map each user to a list"),
        (contents(likes={"0": [10**40]}), "must map each user to a list"),
        (contents(likes="{"), "must map each user to a list"),
        (contents(likes="[" * 100_000), "must map each user to a list"),
    ],
)
def test_every_error_has_its_message(tmp_path: Path, files: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        read_lastfm(zipped(tmp_path, files))


def test_an_archive_without_a_file_or_without_sense_is_refused(tmp_path: Path) -> None:
    files = contents()
    files.pop(lastfm.ARTISTS)
    with pytest.raises(InvalidInput, match=f"has no file {lastfm.ARTISTS}"):
        read_lastfm(zipped(tmp_path, files))
    (tmp_path / lastfm.ARCHIVE).write_bytes(b"no zip")
    with pytest.raises(InvalidInput, match="is not a valid zip archive"):
        read_lastfm(tmp_path)


def test_an_empty_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match=f"neither {lastfm.ARCHIVE} nor {lastfm.EDGES}"):
        read_lastfm(tmp_path)
