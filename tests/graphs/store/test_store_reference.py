"""A reference finds its store again, or raises a clear error."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.store import NodeNames, Store, StoreReference, are_node_names, convert_from
from bangs.graphs.store import node_names as names_module


def graph() -> Data:
    edges = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    ends = torch.cat([edges, edges.flip(0)], dim=1)
    return Data(x=torch.eye(6), edge_index=ends, y=torch.tensor([0, 1, 0, 1, -1, -1]), num_nodes=6)


@pytest.fixture
def where(tmp_path: Path) -> StoreReference:
    convert_from(graph(), tmp_path / "store")
    return StoreReference.of(Store.open(tmp_path / "store"))


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeNames:
    """The names of a store of tables, read two at a time."""
    folder = tmp_path / "tables"
    folder.mkdir()
    rows = "".join(f"{name},{number / 2},{number % 2}\n" for number, name in enumerate(["a", "née", "7", "a b"]))
    (folder / "nodes.csv").write_text(f"id,size,label\n{rows}", encoding="utf-8")
    (folder / "edges.csv").write_text("source,target\na,née\nnée,7\n7,a b\n", encoding="utf-8")
    convert_from(str(folder), tmp_path / "store")
    monkeypatch.setattr(names_module, "BLOCK_NAMES", 2)
    return NodeNames(StoreReference.of(Store.open(tmp_path / "store")))


def test_a_file_names_the_store_as_seen_from_its_folder(where: StoreReference, tmp_path: Path) -> None:
    plain = json.loads(json.dumps(where.to_plain(tmp_path / "models")))
    assert plain["path"] == "../store"
    loaded = StoreReference.from_plain(plain, tmp_path / "models")
    assert loaded == where
    assert torch.equal(loaded.store.y, where.store.y)


def test_a_missing_store_is_reported_with_its_path_and_a_remedy(where: StoreReference, tmp_path: Path) -> None:
    reference = StoreReference.from_plain(where.to_plain(tmp_path), tmp_path)
    where.path.rename(tmp_path / "moved")
    with pytest.raises(InvalidInput, match=r"a store at '.*/store', which is not there.*--store PATH"):
        _ = reference.store
    assert reference.at(tmp_path / "moved").store.num_nodes == 6


def test_the_error_for_a_changed_store_names_what_changed(where: StoreReference, tmp_path: Path) -> None:
    other = graph()
    other.x, other.y = other.x + 1, torch.tensor([1, 1, 0, 1, -1, -1])
    convert_from(other, tmp_path / "changed")
    with pytest.raises(
        InvalidInput,
        match=r"'.*/changed' is not the one the model was fitted on: the checksums of features, labels differ; put",
    ):
        _ = where.at(tmp_path / "changed").store
    larger = Data(x=torch.eye(8), edge_index=other.edge_index, y=torch.tensor([0, 1] * 4), num_nodes=8)
    convert_from(larger, tmp_path / "larger")
    with pytest.raises(InvalidInput, match="it has 8 nodes, the other had 6"):
        _ = where.at(tmp_path / "larger").store


def test_names_are_read_when_needed(named: NodeNames) -> None:
    assert list(named) == ["a", "née", "7", "a b"]
    assert (named[1], named[-1], named[1:3]) == ("née", "a b", ["née", "7"])
    assert [named.find(name) for name in ("a", "7", "a b", "b", "3")] == [0, 2, 3, None, None]
    with pytest.raises(IndexError):
        named[4]


def test_nodes_without_names_are_called_by_their_numbers(where: StoreReference) -> None:
    names = NodeNames(where)
    assert list(names) == ["0", "1", "2", "3", "4", "5"]
    assert [names.find(name) for name in ("5", "6", "-1", "05", "x", "9" * 30)] == [5, None, None, None, None, None]


def test_known_names_are_found_as_in_a_set(named: NodeNames) -> None:
    candidates = ["a b", "née", "b", "", "7", "07", "\ud800"]
    assert are_node_names(candidates, named).tolist() == are_node_names(candidates, list(named)).tolist()
    assert are_node_names(candidates, np.array(list(named), dtype=object)).sum() == 3


def test_names_with_decreasing_offsets_are_refused(named: NodeNames) -> None:
    ends = named.reference.store.array("ids.ends")
    np.array([3, 1, *ends[2:]], dtype="<i8").tofile(named.reference.path / "ids.ends.bin")
    with pytest.raises(InvalidInput, match=r"ids.ends.bin' is damaged.*do not follow each other"):
        list(NodeNames(StoreReference.of(Store.open(named.reference.path))))


def test_a_model_that_names_a_strange_folder_gets_an_error_that_shows_nothing_of_it(
    where: StoreReference, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "manifest.json").write_text('{"kind": "a secret"}')
    for path in ("secret", "../../../../etc", "store/labels.bin"):
        facts = {**where.to_plain(tmp_path), "path": path}
        with pytest.raises(InvalidInput) as caught:
            _ = StoreReference.from_plain(facts, tmp_path).store
        assert "a secret" not in str(caught.value)


@pytest.mark.parametrize("wrong", [{"path": 7}, {"path": "a\0b"}, {"nodes": "many"}, {"checksums": []}])
def test_an_invalid_reference_is_refused(where: StoreReference, tmp_path: Path, wrong: dict[str, object]) -> None:
    with pytest.raises((InvalidInput, TypeError, ValueError)):
        StoreReference.from_plain({**where.to_plain(tmp_path), **wrong}, tmp_path)
