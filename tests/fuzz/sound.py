"""Sound: small files of every kind that bangs reads, as they should be."""

import io
import json
import pickle
import zipfile
from collections import defaultdict
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from torch_geometric.data import Data

from bangs.cli import app
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.fit_checkpoints import FitCheckpoints
from bangs.experiments.experiment import Experiment, exam_of
from bangs.experiments.results import json_lines
from bangs.graphs.datasets import flickr, lastfm
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.splits import mark, per_class
from bangs.graphs.store import convert_from
from bangs.runs import RunFolder
from bangs.selftraining.loop import State
from bangs.training.trainer import Learner


@cache
def graph() -> Data:
    """30 nodes in three classes."""
    data = citation(nodes=30, classes=3, features=8, seed=1, mean_degree=4.0, homophily=0.9, signal=0.9)
    return mark(data, per_class(data.y, 2, 6, 12, [0]))


def _packed(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _common() -> dict[str, Any]:
    data = graph()
    masks = {name: data[name].numpy() for name in ("train_mask", "val_mask", "test_mask")}
    return {"edge_index": data.edge_index.numpy(), "y": data.y.numpy(), **masks}


def dense() -> bytes:
    return _packed(x=graph().x.to_dense().numpy(), **_common())


def sparse() -> bytes:
    x = sp.csr_array(graph().x.to_dense().numpy())
    return _packed(x_data=x.data, x_indices=x.indices, x_indptr=x.indptr, x_shape=np.array(x.shape), **_common())


def npy() -> bytes:
    out = io.BytesIO()
    np.save(out, graph().x.to_dense().numpy())
    return out.getvalue()


def features() -> bytes:
    out = io.BytesIO()
    sp.save_npz(out, sp.csr_matrix(graph().x.to_dense().numpy()))
    return out.getvalue()


def _columns() -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    data = graph()
    words = ("red", "green", "blue")
    part = np.select(
        [data.train_mask.numpy(), data.val_mask.numpy(), data.test_mask.numpy()], ["train", "val", "test"], ""
    )
    nodes: dict[str, list[Any]] = {
        "id": [f"n{node}" for node in range(30)],
        "age": [20.5 + node for node in range(30)],
        "colour": [words[node % 3] for node in range(30)],
        "label": [f"class {label}" for label in data.y.tolist()],
        "split": part.tolist(),
    }
    source, target = (data.edge_index[end].tolist() for end in (0, 1))
    edges: dict[str, list[Any]] = {
        "source": [f"n{node}" for node in source],
        "target": [f"n{node}" for node in target],
        "weight": [1.0 + (place % 4) / 2 for place in range(len(source))],
    }
    return nodes, edges


def csv() -> dict[str, bytes]:
    def spelled(columns: dict[str, list[Any]]) -> bytes:
        rows = zip(*columns.values(), strict=True)
        return "".join(",".join(map(str, row)) + "\n" for row in [tuple(columns), *rows]).encode()

    nodes, edges = _columns()
    return {"nodes.csv": spelled(nodes), "edges.csv": spelled(edges)}


def parquet() -> dict[str, bytes]:
    nodes, edges = _columns()
    return {"nodes.parquet": _table(nodes), "edges.parquet": _table(edges)}


def _table(columns: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


SUITE = b"""title = "Small"
kind = "table"
rows = ["dataset"]
columns = "method"
focus = "bangs"
protocols = ["validation", "best_test"]
about = "A few words."

[experiment]
seeds = 2
rounds = 3
k = 5
candidates = 10
noise = 0.1

[axes]
dataset = ["synthetic", "cora"]
method = ["raw", { method = "bangs", k = 7, changes = { epochs = 5 } }]

[names]
bangs = "BANGS"

[published]
protocol = "best_test"
synthetic = "none"
[published.cora]
raw = [80.1, 0.5]
bangs = "none"
"""


@cache
def experiment() -> Experiment:
    changes: dict[str, float | int | str] = {"epochs": 5}
    return Experiment(dataset="small", method="bangs", rounds=4, k=3, candidates=6, seeds=(0, 1), changes=changes)


@cache
def learner() -> Learner:
    return experiment().self_trainer().trainer.prepare(experiment().task(graph()))


@cache
def exam() -> str:
    return exam_of(experiment(), graph()).digest


class _Enough(Exception):
    """The end of a run that an observer calls."""


def run_files() -> dict[str, bytes]:
    """A run that was stopped after its second round."""

    def stop(state: State, row: dict[str, Any]) -> None:
        if state.index == 2:
            raise _Enough

    with TemporaryDirectory() as place:
        with suppress(_Enough), RunFolder.create_or_resume(place, experiment().config(), resume=False) as run_folder:
            experiment().run(data=graph(), device="cpu", run_folder=run_folder, observers=[stop])
        return _contents(Path(place))


def finished_files() -> dict[str, bytes]:
    """A suite's folder with one finished run."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "runs" / "0123456789abcdef"
        with RunFolder.create_or_resume(folder, experiment().config(), resume=False) as run_folder:
            experiment().run(data=graph(), device="cpu", run_folder=run_folder)
        return _contents(Path(place))


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def exported() -> bytes:
    row = {
        "config": experiment().settings(),
        "environment": {"device": "cpu"},
        "seed": 0,
        "batch": 2,
        "validation": [0.5, 0.6],
        "test": [0.4, 0.5],
        "pseudo_accuracy": [None, 0.7],
        "labelled": [6, 9],
        "epochs": [5, 4],
        "seconds": {"first": 0.1, "calibrate": 0.1, "select": 0.1, "train": 0.1, "total": 0.5},
    }
    return json_lines({**row, "run": run, "seed": seed} for run in ("0" * 16, "1" * 16) for seed in (0, 1)).encode()


def classifier(rounds: int) -> SelfTrainingClassifier:
    return SelfTrainingClassifier(
        method="hard", validation=0.25, rounds=rounds, k=2, epochs=5, device="cpu", random_state=0
    )


def few_labels() -> dict[str, Any]:
    data = graph()
    labels = np.where(data.train_mask | data.val_mask, data.y, -1)
    return {"X": data.x.to_dense().numpy(), "y": labels, "edge_index": data.edge_index.numpy()}


def saved() -> bytes:
    with TemporaryDirectory() as place:
        classifier(2).fit(**few_labels()).save(place)
        return (Path(place) / "model.safetensors").read_bytes()


def stopped_fit() -> dict[str, bytes]:
    """A fit that was stopped after its second round."""
    with TemporaryDirectory() as place:
        with RunFolder.create_or_resume(place, {"fit": "small"}, resume=False) as run_folder:
            classifier(2).fit(**few_labels(), checkpoints=FitCheckpoints(run_folder))
        return _contents(Path(place))


def _tables_in(place: Path) -> Path:
    tables = place / "tables"
    tables.mkdir()
    for name, content in csv().items():
        (tables / name).write_bytes(content)
    return tables


def fitted() -> dict[str, bytes]:
    """What `bangs fit` leaves."""
    with TemporaryDirectory() as place:
        tables = _tables_in(Path(place))
        words = [
            "fit",
            str(tables),
            "--out",
            f"{place}/fit",
            "--method=hard",
            "--validation=0.25",
            "--rounds=2",
            "--k=3",
            "--epochs=5",
            "--device=cpu",
        ]
        with redirect_stdout(io.StringIO()):
            app([*words, "--quiet"], standalone_mode=False)
        files = _contents(Path(place) / "fit")
        return {name: body for name, body in files.items() if name.endswith((".json", ".jsonl", ".safetensors"))}


def stored() -> dict[str, bytes]:
    """What `bangs convert` makes of two tables."""
    with TemporaryDirectory() as place:
        tables = _tables_in(Path(place))
        convert_from(str(tables), Path(place) / "store")
        return _contents(Path(place) / "store")


def pickles() -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    known = sp.csr_matrix((rng.random((14, 5)) < 0.4).astype(np.float32))
    tested = sp.csr_matrix((rng.random((4, 5)) < 0.4).astype(np.float32))
    labels = np.eye(3, dtype=np.int32)
    links = defaultdict(list, {node: [(node + 1) % 18, (node + 5) % 18] for node in range(18)})
    parts: dict[str, Any] = {
        "x": known[:6],
        "y": labels[np.arange(6) % 3],
        "allx": known,
        "ally": labels[np.arange(14) % 3],
        "tx": tested,
        "ty": labels[np.arange(4) % 3],
        "graph": links,
    }
    files = {f"ind.small.{part}": pickle.dumps(content, protocol=4) for part, content in parts.items()}
    return {**files, "ind.small.test.index": b"17\n14\n16\n15\n"}


def flickr_files() -> dict[str, bytes]:
    data = graph()
    adjacency = sp.csr_matrix(
        (np.ones(data.edge_index.shape[1]), tuple(data.edge_index.numpy())), shape=(30, 30), dtype=np.float32
    )
    links = io.BytesIO()
    sp.save_npz(links, adjacency)
    classes = {str(node): int(label) for node, label in enumerate(data.y)}
    roles = {"tr": list(range(10)), "va": list(range(10, 20)), "te": list(range(20, 30))}
    return {
        flickr.LINKS: links.getvalue(),
        flickr.FEATURES: npy(),
        flickr.CLASSES: json.dumps(classes).encode(),
        flickr.ROLES: json.dumps(roles).encode(),
    }


def lastfm_files() -> dict[str, bytes]:
    data = graph()
    edges = "node_1,node_2\n" + "".join(f"{a},{b}\n" for a, b in data.edge_index.T.tolist() if a < b)
    countries = "id,target\n" + "".join(f"{node},{label}\n" for node, label in enumerate(data.y.tolist()))
    artists = {str(node): [node % 7, node % 11, 12] for node in range(30)}
    return {
        lastfm.EDGES: edges.encode(),
        lastfm.COUNTRIES: countries.encode(),
        lastfm.ARTISTS: json.dumps(artists).encode(),
    }


def lastfm_zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in lastfm_files().items():
            archive.writestr(f"lasftm_asia/{name}", content)
    return out.getvalue()
