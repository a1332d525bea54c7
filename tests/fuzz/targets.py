"""Targets: every reader of files from outside, with sound files to begin from."""

import io
import json
import pickle
import zipfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from torch_geometric.data import Data

from bangs.classifier import SelfTrainingClassifier
from bangs.cli import app
from bangs.errors import BangsError
from bangs.experiments.experiment import Experiment, compact
from bangs.experiments.journal import Journal
from bangs.experiments.results import results_in
from bangs.experiments.suite_file import read_suite
from bangs.graphs import custom, flickr, lastfm, planetoid
from bangs.graphs.npz import read_graph
from bangs.graphs.splits import mark, per_class
from bangs.graphs.store import Store, convert_from
from bangs.graphs.synthetic import citation
from bangs.keeping import Keeper
from bangs.learners.training import Learner
from bangs.loop import State
from bangs.report.page import page_of
from bangs.runs import RunFolder, read_run
from bangs.types import check_graph
from fuzz import mutations as m

SUITES = Path(__file__).parents[2] / "suites"


@dataclass(frozen=True)
class Target:
    """A reader, the sound files it reads, and how each of them is damaged."""

    name: str
    read: Callable[[Path], object]  # of the folder that holds the files
    files: dict[str, bytes]
    mutate: dict[str, m.Mutation]  # file name, or the end of it -> damage
    writes: bool = False  # whether the reader's work may change that folder
    weight: int = 1
    also: dict[str, bytes] = field(default_factory=dict)  # files that stay sound

    def mutation(self, name: str) -> m.Mutation:
        return next(own for end, own in self.mutate.items() if name.endswith(end))


@cache
def targets() -> dict[str, Target]:
    """All targets by name; making them trains two small models."""
    made = (
        Target("npz dense", _npz, {"graph.npz": _dense()}, {".npz": m.ARCHIVE}, weight=4),
        Target("npz sparse", _npz, {"graph.npz": _sparse()}, {".npz": m.ARCHIVE}, weight=4),
        Target("csv", _tables, _csv(), {".csv": m.TEXT}, weight=6),
        Target("csv and array", _tables, _csv(), {".csv": m.TEXT}, weight=1, also={"features.npy": _npy()}),
        Target("array beside", _tables, {"features.npz": _features()}, {".npz": m.ARCHIVE}, weight=2, also=_csv()),
        Target("npy beside", _tables, {"features.npy": _npy()}, {".npy": m.ARRAY}, weight=1, also=_csv()),
        Target("parquet", _tables, _parquet(), {".parquet": parquet}, weight=5),
        Target("suite", _suite, {"small.toml": _SUITE}, {".toml": m.TEXT}, weight=4),
        *(
            Target(f"suite {name}", _suite, {f"{name}.toml": (SUITES / f"{name}.toml").read_bytes()}, {"": m.TEXT})
            for name in ("table-main", "figure-k", "table-stages")
        ),
        Target("run folder", _resume, _run_files(), _RUN, writes=True, weight=6),
        Target("finished run", _record, _finished_files(), _RUN, weight=4),
        Target("rows", _rows, {"rows.jsonl": _exported()}, {".jsonl": m.JSON_LINES}, weight=2),
        Target("model", _model, {"model.safetensors": _saved()}, {"": m.CHECKPOINT}, weight=3),
        Target("fit folder", _fit_folder, _fitted(), _RUN, weight=3),
        Target("stopped fit", _resume_fit, _stopped_fit(), _RUN, writes=True, weight=3),
        Target("store", _store, _stored(), {".json": m.JSON, ".bin": m.BYTES}, weight=3),
        Target("planetoid", _planetoid, _pickles(), {".index": m.TEXT, "": pickled}, weight=5),
        Target("flickr", _flickr, _flickr_files(), {".json": m.JSON, ".npy": m.ARRAY, ".npz": m.ARCHIVE}, weight=2),
        Target("lastfm", _lastfm, _lastfm_files(), {".json": m.JSON, ".csv": m.TEXT}, weight=2),
        Target("lastfm zip", _lastfm, {lastfm.ARCHIVE: _lastfm_zip()}, {".zip": m.ARCHIVE}, weight=1),
    )
    return {target.name: target for target in made}


_RUN: dict[str, m.Mutation] = {
    "history.jsonl": m.JSON_LINES,
    "events.jsonl": m.JSON_LINES,
    ".safetensors": m.CHECKPOINT,
    "lock": m.JSON,
    ".json": m.SEALED,
}


# ── readers ──────────────────────────────────────────────────────────────────


def _npz(folder: Path) -> None:
    _check(read_graph(folder / "graph.npz"))
    custom.read(folder / "graph.npz")


def _tables(folder: Path) -> None:
    own = custom.read(folder)
    assert check_graph(own.data) == len(own.ids)


def _suite(folder: Path) -> None:
    for file in sorted(folder.glob("*.toml")):
        list(read_suite(file).cells())


def _resume(folder: Path) -> None:
    with RunFolder.create_or_resume(folder, _experiment().config(), resume=True) as store:
        if store.result is None:
            found = Journal(store, _graph()).open()
            if found.resume is not None:
                state = found.resume(_learner())
                state.student.predict(_learner().task.graph)


def _record(folder: Path) -> None:
    with suppress(BangsError):
        read_run(folder / "runs" / "0123456789abcdef")
    _scored(folder)


def _rows(folder: Path) -> None:
    _scored(folder / "rows.jsonl")


def _scored(place: Path) -> None:
    for result in results_in(place):
        for protocol in ("validation", "best_test", "last"):
            result.scores(protocol)


def _model(folder: Path) -> None:
    model = SelfTrainingClassifier.load(folder)
    model.predict_proba()
    model.predict_proba(_graph().x.to_dense().numpy(), _graph().edge_index.numpy())


def _fit_folder(folder: Path) -> None:
    """What `bangs report`, `bangs explain` and `bangs predict` read."""
    with suppress(BangsError):
        page_of(folder)
    with suppress(BangsError):
        model = SelfTrainingClassifier.load(folder)
        for node in model.node_names_[:2]:
            model.explain(str(node))
    columns = read_run(folder).config.get("columns")
    if isinstance(columns, dict):
        custom.Encoding.from_dict(columns)


def _resume_fit(folder: Path) -> None:
    with RunFolder.create_or_resume(folder, {"fit": "small"}, resume=True) as store:
        model = _classifier(3).fit(*_few_labels(), keeper=Keeper(store))
        model.explain(0)
        assert 0 <= model.validation_score_ <= 1
        assert np.isfinite(model.predict_proba()).all()


def _store(folder: Path) -> None:
    store = Store.open(folder)
    with suppress(BangsError):
        store.verify()
    store.ids()
    _check(store.whole())


def _planetoid(folder: Path) -> None:
    former, planetoid.VALIDATION = planetoid.VALIDATION, 6
    try:
        _check(planetoid.read_planetoid(folder, "small"))
    finally:
        planetoid.VALIDATION = former


def _flickr(folder: Path) -> None:
    _check(flickr.read_flickr(folder))


def _lastfm(folder: Path) -> None:
    _check(lastfm.read_lastfm(folder))


def _check(data: Data) -> None:
    """What was read is a sound graph, or is refused where a graph is needed."""
    if data.get("x") is not None:
        check_graph(data)
    assert data.y.shape == (data.num_nodes,)
    assert int(data.y.max()) < int(data.num_classes)


# ── sound files ──────────────────────────────────────────────────────────────


@cache
def _graph() -> Data:
    """30 nodes in three classes."""
    data = citation(nodes=30, classes=3, features=8, seed=1, mean_degree=4.0, homophily=0.9, signal=0.9)
    return mark(data, per_class(data.y, 2, 6, 12, [0]))


def _packed(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _common() -> dict[str, Any]:
    data = _graph()
    masks = {name: data[name].numpy() for name in ("train_mask", "val_mask", "test_mask")}
    return {"edge_index": data.edge_index.numpy(), "y": data.y.numpy(), **masks}


def _dense() -> bytes:
    return _packed(x=_graph().x.to_dense().numpy(), **_common())


def _sparse() -> bytes:
    x = sp.csr_array(_graph().x.to_dense().numpy())
    return _packed(x_data=x.data, x_indices=x.indices, x_indptr=x.indptr, x_shape=np.array(x.shape), **_common())


def _npy() -> bytes:
    out = io.BytesIO()
    np.save(out, _graph().x.to_dense().numpy())
    return out.getvalue()


def _features() -> bytes:
    out = io.BytesIO()
    sp.save_npz(out, sp.csr_matrix(_graph().x.to_dense().numpy()))
    return out.getvalue()


def _columns() -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    data = _graph()
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


def _csv() -> dict[str, bytes]:
    def spelled(columns: dict[str, list[Any]]) -> bytes:
        rows = zip(*columns.values(), strict=True)
        return "".join(",".join(map(str, row)) + "\n" for row in [tuple(columns), *rows]).encode()

    nodes, edges = _columns()
    return {"nodes.csv": spelled(nodes), "edges.csv": spelled(edges)}


def _parquet() -> dict[str, bytes]:
    nodes, edges = _columns()
    return {"nodes.parquet": _table(nodes), "edges.parquet": _table(edges)}


def _table(columns: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


_KINDS: tuple[Any, ...] = (
    pa.int8(),
    pa.uint64(),
    pa.float16(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("ns"),
    pa.time64("us"),
    pa.duration("s"),
    pa.decimal128(20, 3),
    pa.binary(),
    pa.large_string(),
    pa.list_(pa.int64()),
    pa.struct([("a", pa.int64())]),
    pa.map_(pa.string(), pa.int64()),
    pa.dictionary(pa.int8(), pa.string()),
    pa.null(),
)


def parquet(body: bytes, draw: m.Draw) -> bytes:
    """A Parquet file with a column of another type, of nulls, of another name or length; or damaged bytes."""
    try:
        table = _other(pq.read_table(io.BytesIO(body)), draw) if draw.random() < 0.7 else None
        out = io.BytesIO()
        pack = draw.choice(("none", "snappy", "zstd"))
        pq.write_table(table, out, use_dictionary=draw.random() < 0.5, compression=pack)
    except Exception:  # it was damaged before, or there is no such table
        return m.BYTES(body, draw)
    return out.getvalue()


def _other(table: Any, draw: m.Draw) -> Any:
    name = draw.choice(table.column_names)
    kind, place = draw.randrange(5), table.column_names.index(name)
    if kind == 0:
        strange = draw.choice(_KINDS)
        return table.set_column(place, pa.field(name, strange), pa.nulls(len(table), strange))
    if kind == 1:
        return table.rename_columns([draw.choice((own, "", "id", draw.choice(m.WORDS))) for own in table.column_names])
    if kind == 2:
        words = [draw.choice((*m.WORDS, "n1", "n2", None)) for _ in range(len(table))]
        return table.set_column(place, name, pa.array(words, pa.string()))
    if kind == 3:
        return table.slice(draw.randrange(len(table) + 1), draw.choice((0, 1, 5, 100)))
    return draw.choice((table.drop_columns([name]), table.append_column(name, table.column(place))))


_SUITE = b"""title = "Small"
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
def _experiment() -> Experiment:
    changes: dict[str, float | int | str] = {"epochs": 5}
    return Experiment(dataset="small", method="bangs", rounds=4, k=3, candidates=6, seeds=(0, 1), changes=changes)


@cache
def _learner() -> Learner:
    return _experiment().trainer().trainer.prepare(_experiment().task(_graph())[0])


class _Enough(Exception):
    """The end of a run that an observer calls."""


def _run_files() -> dict[str, bytes]:
    """A run that was stopped after its second round."""

    def stop(state: State, row: dict[str, Any]) -> None:
        if state.index == 2:
            raise _Enough

    with TemporaryDirectory() as place:
        with suppress(_Enough), RunFolder.create_or_resume(place, _experiment().config(), resume=False) as store:
            _experiment().run(data=_graph(), device="cpu", store=store, observers=[stop])
        return _contents(Path(place))


def _finished_files() -> dict[str, bytes]:
    """A suite's folder with one finished run."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "runs" / "0123456789abcdef"
        with RunFolder.create_or_resume(folder, _experiment().config(), resume=False) as store:
            store.finish(compact(_experiment().run(data=_graph(), device="cpu", store=store)))
            store.forget()
        return _contents(Path(place))


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _exported() -> bytes:
    row = {
        "run": "0123456789abcdef",
        "config": _experiment().settings(),
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
    return "".join(json.dumps({**row, "seed": seed}) + "\n" for seed in (0, 1)).encode()


def _classifier(rounds: int) -> SelfTrainingClassifier:
    return SelfTrainingClassifier(rounds=rounds, k=2, epochs=5, device="cpu", random_state=0)


def _few_labels() -> tuple[Any, Any, Any]:
    data = _graph()
    labels = np.where(data.train_mask | data.val_mask, data.y, -1)
    return data.x.to_dense().numpy(), data.edge_index.numpy(), labels


def _saved() -> bytes:
    with TemporaryDirectory() as place:
        _classifier(2).fit(*_few_labels()).save(place)
        return (Path(place) / "model.safetensors").read_bytes()


def _stopped_fit() -> dict[str, bytes]:
    """A fit that was stopped after its second round."""
    with TemporaryDirectory() as place:
        with RunFolder.create_or_resume(place, {"fit": "small"}, resume=False) as store:
            _classifier(2).fit(*_few_labels(), keeper=Keeper(store))
        return _contents(Path(place))


def _tables_in(place: Path) -> Path:
    tables = place / "tables"
    tables.mkdir()
    for name, content in _csv().items():
        (tables / name).write_bytes(content)
    return tables


def _fitted() -> dict[str, bytes]:
    """What `bangs fit` leaves."""
    with TemporaryDirectory() as place:
        tables = _tables_in(Path(place))
        words = ["fit", str(tables), "--out", f"{place}/fit", "--rounds=2", "--k=3", "--epochs=5", "--device=cpu"]
        with redirect_stdout(io.StringIO()):
            app([*words, "--quiet"], standalone_mode=False)
        files = _contents(Path(place) / "fit")
        return {name: body for name, body in files.items() if name.endswith((".json", ".jsonl", ".safetensors"))}


def _stored() -> dict[str, bytes]:
    """What `bangs convert` makes of two tables."""
    with TemporaryDirectory() as place:
        tables = _tables_in(Path(place))
        convert_from(str(tables), Path(place) / "store")
        return _contents(Path(place) / "store")


def _pickles() -> dict[str, bytes]:
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


_HARMFUL = (
    b"cposix\nsystem\n(S'touch owned'\ntR.",
    b'cbuiltins\neval\n(S\'open("owned", "w")\'\ntR.',
    b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0btouch owned\x85R.",
    b"cnumpy\nload\n(S'owned'\ntR.",
    b"(S'owned'\niposix\nmkdir\n.",
    b"\x80\x02}(K\x00]q\x00(K\x01e" + b"K\x01h\x00" * 200 + b"u.",
    b"\x80\x02Nr\xff\xff\xff\x7f.",
    b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x0fx.",
    b"\x80\x02" + b"]" * 2000 + b"." + b"a" * 1999,
    b"\x80\x02\x8b\xff\xff\xff\x7f1.",
)


def pickled(body: bytes, draw: m.Draw) -> bytes:
    """A pickle with damaged bytes, a harmful one, or one with a harmful piece inside."""
    kind = draw.randrange(8)
    if kind == 0:
        return m.BYTES(draw.choice(_HARMFUL), draw) if draw.random() < 0.3 else draw.choice(_HARMFUL)
    if kind == 1:
        place = draw.randrange(len(body))
        return body[:place] + draw.choice(_HARMFUL)[:-1] + body[place:]
    if kind == 2:
        odd: Any = draw.choice((*m.VALUES, {0: 10**30}, {10**30: [0]}, {0: "abc"}, {0: {1: 2}}, np.float32(1), b"x"))
        return pickle.dumps(odd, protocol=draw.choice((0, 3, 4)))
    if kind == 3:
        shape: Any = draw.choice(((), (0, 3), (14, 3), (14, 0), (10, 2), (1,)))
        return pickle.dumps(np.zeros(shape, draw.choice(("f8", "i1", "c8", "O", "U3"))), protocol=4)
    return m.BYTES(body, draw)


def _flickr_files() -> dict[str, bytes]:
    data = _graph()
    adjacency = sp.csr_matrix(
        (np.ones(data.edge_index.shape[1]), tuple(data.edge_index.numpy())), shape=(30, 30), dtype=np.float32
    )
    links = io.BytesIO()
    sp.save_npz(links, adjacency)
    classes = {str(node): int(label) for node, label in enumerate(data.y)}
    roles = {"tr": list(range(10)), "va": list(range(10, 20)), "te": list(range(20, 30))}
    return {
        flickr.LINKS: links.getvalue(),
        flickr.FEATURES: _npy(),
        flickr.CLASSES: json.dumps(classes).encode(),
        flickr.ROLES: json.dumps(roles).encode(),
    }


def _lastfm_files() -> dict[str, bytes]:
    data = _graph()
    edges = "node_1,node_2\n" + "".join(f"{a},{b}\n" for a, b in data.edge_index.T.tolist() if a < b)
    countries = "id,target\n" + "".join(f"{node},{label}\n" for node, label in enumerate(data.y.tolist()))
    artists = {str(node): [node % 7, node % 11, 12] for node in range(30)}
    return {
        lastfm.EDGES: edges.encode(),
        lastfm.COUNTRIES: countries.encode(),
        lastfm.ARTISTS: json.dumps(artists).encode(),
    }


def _lastfm_zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _lastfm_files().items():
            archive.writestr(f"lasftm_asia/{name}", content)
    return out.getvalue()
