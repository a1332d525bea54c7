"""Stores made from a seed or from arrays equal the same graphs in memory."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Split, Task
from bangs.errors import BangsError, DataUnavailable, InvalidInput
from bangs.experiments.experiment import Experiment, exam_of
from bangs.graphs.datasets import loading
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.neighbours import NeighbourLists
from bangs.graphs.store import Store, convert_from, is_store, read_user_graph, release, stored_graph
from bangs.graphs.store.edge_sort import EdgeWriter
from bangs.graphs.store.random_graph import Synthetic
from bangs.graphs.store.writer import Writer
from bangs.nn.models import GCN
from bangs.training.neighbour_sampling import Sampling
from bangs.training.trainer import Trainer
from tests.graphs.tables.sample_tables import edges_of


@pytest.fixture
def synthetic_store(tmp_path) -> Path:
    convert_from(
        "synthetic:nodes=500,edges=3000,features=6,classes=3,train=60,val=60", tmp_path / "synthetic_store", seed=1
    )
    return tmp_path / "synthetic_store"


def small(weighted: bool = False) -> Data:
    data = citation(nodes=90, classes=3, features=12, isolated=0.05)
    data.x = data.x.to_dense()
    node = torch.arange(90)
    data.train_mask, data.val_mask, data.test_mask = node < 20, (node >= 20) & (node < 40), node >= 40
    if weighted:
        low, high = data.edge_index.sort(0).values
        data.edge_weight = (low * 7 + high * 3) % 5 + 0.5
    return data


@pytest.mark.parametrize("weighted", [False, True])
def test_a_graph_comes_back_as_it_was(tmp_path, weighted):
    data = small(weighted)
    convert_from(data, tmp_path / "store")
    back = Store.open(tmp_path / "store").whole()
    assert edges_of(back) == pytest.approx(edges_of(data))
    assert torch.equal(back.x, data.x)
    for name in ("y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(back[name], data[name])
    assert not Store.open(tmp_path / "store").manifest.directed


def test_a_directed_graph_has_both_sides(tmp_path):
    data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 0, 1, 0], [1, 2, 3, 1]]), y=torch.tensor([0, 1, 0, 1]))
    convert_from(data, tmp_path / "store")
    graph = Store.open(tmp_path / "store").unlabelled()
    assert graph.into.pointers.tolist() == [0, 0, 1, 2, 3]
    assert graph.into.nodes.tolist() == [0, 0, 1]
    assert graph.out.pointers.tolist() == [0, 2, 3, 3, 3]
    assert graph.out.nodes.tolist() == [1, 2, 3]


def test_links_of_a_store_are_those_of_the_graph(tmp_path):
    data = small(weighted=True)
    convert_from(data, tmp_path / "store")
    stored, plain = Store.open(tmp_path / "store").unlabelled().into, NeighbourLists.of(data)
    assert torch.equal(stored.pointers, plain.pointers)
    nodes = torch.arange(90)
    torch.testing.assert_close(stored.degree(nodes), plain.degree(nodes))


@pytest.mark.parametrize("directed", [False, True])
def test_edges_in_any_order_become_the_same_rows(tmp_path, directed, monkeypatch):
    monkeypatch.setattr("bangs.graphs.store.edge_sort.RANGES", 3)
    source, target = np.array([4, 0, 4, 2, 0, 1]), np.array([1, 1, 1, 0, 2, 4])
    weight = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], np.float32)
    with Writer(tmp_path / "store") as writer:
        edges = EdgeWriter(writer, 5, directed=directed, weighted=True)
        for edge in np.array_split(np.arange(6), 4):
            edges.add(source[edge], target[edge], weight[edge])
        count, needs_both = edges.write()
        arrays = {name: np.fromfile(file.path, file.dtype) for name, file in _closed(writer).items()}
    into = list(zip(np.repeat(np.arange(5), np.diff(arrays["in.pointers"])), arrays["in.nodes"], strict=True))
    weights = {(int(s), int(t)): float(w) for (t, s), w in zip(into, arrays["in.weights"], strict=True)}
    one_way = {(4, 1): 4.0, (0, 1): 2.0, (2, 0): 4.0, (0, 2): 5.0, (1, 4): 6.0}
    both = {(4, 1): 6.0, (1, 4): 6.0, (0, 1): 2.0, (1, 0): 2.0, (2, 0): 5.0, (0, 2): 5.0}
    assert (weights, needs_both) == ((one_way, True) if directed else (both, False))
    assert count == len(weights)


def _closed(writer: Writer) -> dict:
    for file in writer._files.values():
        file.close()
    return writer._files


def test_the_same_seed_makes_the_same_store(tmp_path, synthetic_store):
    text = "synthetic:nodes=500,edges=3000,features=6,classes=3,train=60,val=60"
    same = convert_from(text, tmp_path / "again", seed=1)
    other = convert_from(text, tmp_path / "other", seed=2)
    assert same.digest == Store.open(synthetic_store).manifest.digest != other.digest


def test_a_synthetic_graph_is_undirected_and_homophilous(synthetic_store):
    store = Store.open(synthetic_store)
    data = store.whole()
    assert 2800 < data.num_edges <= 3000
    assert edges_of(data).keys() == {(t, s) for s, t in edges_of(data)}
    same = data.y[data.edge_index[0]] == data.y[data.edge_index[1]]
    assert 0.75 < float(same.float().mean()) < 0.95
    assert [int(data[name].sum()) for name in ("train_mask", "val_mask", "test_mask")] == [60, 60, 380]


def test_opening_reads_no_array(synthetic_store):
    for file in synthetic_store.glob("*.bin"):
        os.chmod(file, 0o000 if os.getuid() else 0o644)
    store = Store.open(synthetic_store)
    assert (store.num_nodes, store.num_classes) == (500, 3)


def test_verify_finds_a_changed_byte(synthetic_store):
    Store.open(synthetic_store).verify()
    with (synthetic_store / "features.bin").open("r+b") as file:
        file.seek(40)
        file.write(b"\x01")
    with pytest.raises(InvalidInput, match=r"features.bin' is damaged.*checksum"):
        Store.open(synthetic_store).verify()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 9}, "version 9"),
        ({"kind": "tea"}, "not the manifest"),
        ({"nodes": 10**12}, "must hold 1 to"),
        ({"nodes": 499}, "must be int64 of shape"),
        ({"edges": "many"}, "damaged"),
        ({"features": 2**40}, "must be float32 or float16"),
        ({"directed": True}, "'out.nodes' of .* is missing"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused_before_anything_is_mapped(synthetic_store, change, message):
    content = json.loads((synthetic_store / "manifest.json").read_text())
    (synthetic_store / "manifest.json").write_text(json.dumps({**content, **change}))
    with pytest.raises(InvalidInput, match=message):
        Store.open(synthetic_store)


def test_a_file_cut_short_or_replaced_by_a_link_is_refused(synthetic_store, tmp_path):
    body = (synthetic_store / "in.nodes.bin").read_bytes()
    (synthetic_store / "in.nodes.bin").write_bytes(body[:-4])
    with pytest.raises(InvalidInput, match=r"must have [\d,]+ bytes"):
        Store.open(synthetic_store)
    (tmp_path / "elsewhere").write_bytes(body)
    (synthetic_store / "in.nodes.bin").unlink()
    (synthetic_store / "in.nodes.bin").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="not a plain file"):
        Store.open(synthetic_store)


def test_a_folder_without_a_manifest_is_no_store(tmp_path):
    assert not is_store(tmp_path)
    with pytest.raises(DataUnavailable, match="bangs convert"):
        Store.open(tmp_path)


def test_edges_to_missing_nodes_are_reported_and_not_followed(synthetic_store):
    nodes = np.fromfile(synthetic_store / "in.nodes.bin", np.int32)
    nodes[::7] = 2_000_000_000
    nodes.tofile(synthetic_store / "in.nodes.bin")
    store = Store.open(synthetic_store)
    with pytest.raises(InvalidInput, match="outside 0"):
        store.verify(checksums=False)
    task = _task(store)
    with pytest.raises(InvalidInput, match="has an end that is not a node"):
        Trainer(GCN(hidden=4), epochs=1, batches=Sampling(64)).fit(task, task.given, Streams((0,)))


def test_a_failed_conversion_leaves_nothing_behind(tmp_path):
    data = small()
    data.x[3, 3] = float("nan")
    with pytest.raises(InvalidInput, match="row 3 of the features"):
        convert_from(data, tmp_path / "store")
    assert list(tmp_path.iterdir()) == []


def test_half_precision_halves_the_features_and_refuses_what_it_cannot_hold(tmp_path):
    data = small()
    convert_from(data, tmp_path / "store", half=True)
    store = Store.open(tmp_path / "store")
    assert store.manifest.arrays["features"].bytes == 90 * 12 * 2
    torch.testing.assert_close(store.whole().x, data.x, atol=1e-3, rtol=1e-3)
    data.x[5, 0] = 1e6
    with pytest.raises(InvalidInput, match=r"row 5 .*too large for float16.*--half"):
        convert_from(data, tmp_path / "other", half=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("synthetic:nodes=ten", "must be a number, got 'ten'"),
        ("synthetic:noses=10", "'noses' is unknown; did you mean 'nodes'"),
        ("synthetic:nodes=1,classes=2", "at least as many as classes"),
        ("synthetic:nodes=100,edges=1e9,classes=2", "too many"),
        ("synthetic:homophily=3", r"must lie in \[0, 1\]"),
        ("synthetic:nodes=40,edges=10,classes=2,train=40", "must leave nodes for the test"),
    ],
)
def test_an_impossible_synthetic_graph_is_refused(text, message):
    with pytest.raises(BangsError, match=message):
        Synthetic.parse(text)


def _task(store: Store) -> Task:
    split = Split(*(store.get(name)[None] for name in ("train_mask", "val_mask", "test_mask")))
    return Task.of(store, split, store.num_classes)


def test_training_from_the_disk_is_training_from_memory(synthetic_store):
    store = Store.open(synthetic_store)
    trainer = Trainer(GCN(hidden=8), epochs=5, batches=Sampling(16, (4, 3), memory=5000))
    data = store.whole()
    split = Split.repeated(data.train_mask, data.val_mask, data.test_mask, 1)
    mapped, plain = _task(store), Task.of(data, split)
    from_disk, from_memory = (trainer.fit(task, task.given, Streams((0,))) for task in (mapped, plain))
    for name, weight in from_disk.weights.items():
        torch.testing.assert_close(weight, from_memory.weights[name], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        from_disk.predict(mapped.graph).logits, from_memory.predict(plain.graph).logits, atol=1e-4, rtol=1e-4
    )


def test_a_task_of_a_store_holds_no_labels_but_those_given(synthetic_store):
    graph = _task(Store.open(synthetic_store)).graph
    assert not hasattr(graph, "y")
    assert graph.get("y") is None


def test_a_run_works_on_a_mapped_store(synthetic_store):
    experiment = Experiment(
        dataset=str(synthetic_store),
        method="bangs",
        seeds=(0,),
        rounds=1,
        k=5,
        candidates=10,
        batch_size=32,
        changes={"epochs": 3},
    )
    result = experiment.run(data=Store.open(synthetic_store), device="cpu")
    assert len(result["rounds"]) == 2
    assert result["batch_size"] == 32
    assert result["rounds"][1]["labelled"][0] == 65


def test_wrong_labels_are_seen_by_the_learner_and_not_by_the_store(synthetic_store):
    store = Store.open(synthetic_store)
    experiment = Experiment(dataset=str(synthetic_store), seeds=(0, 1), noise=1.0)
    task, exam = experiment.task(store), exam_of(experiment, store)
    known = task.given.known
    assert not (task.given.target == store.y)[known].any()
    assert torch.equal(exam.truth[0], store.y)


def test_a_released_array_can_still_be_read(synthetic_store):
    features = Store.open(synthetic_store).unlabelled().x
    before = features.clone()
    release(features)
    assert torch.equal(features, before)
    release(before)
    assert torch.equal(features, before)


def test_a_large_store_names_what_cannot_be_done_with_it(synthetic_store, monkeypatch):
    monkeypatch.setattr(stored_graph, "MAX_BYTES_IN_MEMORY", 100)
    monkeypatch.setattr(stored_graph, "MAX_EDGES_AT_ONCE", 100)
    assert isinstance(loading.load(synthetic_store), Store)
    with pytest.raises(InvalidInput, match="--batch-size"):
        Trainer(GCN(hidden=4), epochs=1).fit(*_given(Store.open(synthetic_store)), Streams((0,)))
    assert isinstance(read_user_graph(synthetic_store).data, Store)


def _given(store: Store):
    task = _task(store)
    return task, task.given


def test_a_folder_of_arrays_is_read_from_front_to_back(tmp_path):
    data = small(weighted=True)
    folder = tmp_path / "arrays"
    folder.mkdir()
    for name in ("edge_index", "x", "y", "edge_weight", "train_mask", "val_mask", "test_mask"):
        np.save(folder / f"{name}.npy", data[name].numpy())
    convert_from(str(folder), tmp_path / "store")
    back = Store.open(tmp_path / "store").whole()
    assert edges_of(back) == pytest.approx(edges_of(data))
    assert torch.equal(back.val_mask, data.val_mask)
    np.save(folder / "edge_index.npy", np.concatenate([data.edge_index.numpy(), [[3], [3]]], axis=1))
    np.save(folder / "edge_weight.npy", np.append(data.edge_weight.numpy(), 2))
    convert_from(str(folder), tmp_path / "loop")
    assert edges_of(Store.open(tmp_path / "loop").whole()) == pytest.approx(edges_of(data)), "a loop is dropped"
    np.save(folder / "edge_index.npy", np.array([[0], [90]]))
    np.save(folder / "edge_weight.npy", np.ones(1))
    with pytest.raises(InvalidInput, match=r"edge 0 of .* joins nodes \[0, 90\], but nodes are numbered 0 … 89"):
        convert_from(str(folder), tmp_path / "other")
