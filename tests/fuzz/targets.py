"""Targets: every reader of files from outside, and what it is fed."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from bangs.core.graph_checks import check_graph
from bangs.errors import BangsError
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.fit_checkpoints import FitCheckpoints
from bangs.experiments.history_file import History
from bangs.experiments.results import results_in
from bangs.experiments.suites.read_suite import read_suite
from bangs.graphs import tables
from bangs.graphs.datasets import flickr, lastfm, planetoid
from bangs.graphs.npz import read_graph
from bangs.graphs.store import NodeNames, Store, StoreReference
from bangs.report.page import page_of
from bangs.runs import RunFolder, read_run
from tests import ROOT
from tests.fuzz import binaries, sound
from tests.fuzz import mutations as m

SUITES = ROOT / "suites"


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
        Target("npz dense", _npz, {"graph.npz": sound.dense()}, {".npz": m.ARCHIVE}, weight=4),
        Target("npz sparse", _npz, {"graph.npz": sound.sparse()}, {".npz": m.ARCHIVE}, weight=4),
        Target("csv", _tables, sound.csv(), {".csv": m.TEXT}, weight=6),
        Target("csv and array", _tables, sound.csv(), {".csv": m.TEXT}, weight=1, also={"features.npy": sound.npy()}),
        Target(
            "array beside", _tables, {"features.npz": sound.features()}, {".npz": m.ARCHIVE}, weight=2, also=sound.csv()
        ),
        Target("npy beside", _tables, {"features.npy": sound.npy()}, {".npy": m.ARRAY}, weight=1, also=sound.csv()),
        Target("parquet", _tables, sound.parquet(), {".parquet": binaries.parquet}, weight=5),
        Target("suite", _suite, {"small.toml": sound.SUITE}, {".toml": m.TEXT}, weight=4),
        *(
            Target(f"suite {name}", _suite, {f"{name}.toml": (SUITES / f"{name}.toml").read_bytes()}, {"": m.TEXT})
            for name in ("table-main", "figure-k", "table-stages")
        ),
        Target("run folder", _resume, sound.run_files(), _RUN, writes=True, weight=6),
        Target("finished run", _record, sound.finished_files(), _RUN, weight=4),
        Target("rows", _rows, {"rows.jsonl": sound.exported()}, {".jsonl": m.JSON_LINES}, weight=2),
        Target("model", _model, {"model.safetensors": sound.saved()}, {"": m.CHECKPOINT}, weight=3),
        Target("fit folder", _fit_folder, sound.fitted(), _RUN, weight=3),
        Target("stopped fit", _resume_fit, sound.stopped_fit(), _RUN, writes=True, weight=3),
        Target("store", _store, sound.stored(), {".json": m.JSON, ".bin": m.BYTES}, weight=3),
        Target("planetoid", _planetoid, sound.pickles(), {".index": m.TEXT, "": binaries.pickled}, weight=5),
        Target(
            "flickr", _flickr, sound.flickr_files(), {".json": m.JSON, ".npy": m.ARRAY, ".npz": m.ARCHIVE}, weight=2
        ),
        Target("lastfm", _lastfm, sound.lastfm_files(), {".json": m.JSON, ".csv": m.TEXT}, weight=2),
        Target("lastfm zip", _lastfm, {lastfm.ARCHIVE: sound.lastfm_zip()}, {".zip": m.ARCHIVE}, weight=1),
    )
    return {target.name: target for target in made}


_RUN: dict[str, m.Mutation] = {
    "history.jsonl": m.JSON_LINES,
    "events.jsonl": m.JSON_LINES,
    ".safetensors": m.CHECKPOINT,
    "lock": m.JSON,
    ".json": m.SEALED,
}


def _npz(folder: Path) -> None:
    _check(read_graph(folder / "graph.npz"))
    tables.read(folder / "graph.npz")


def _tables(folder: Path) -> None:
    own = tables.read(folder)
    assert check_graph(own.data) == len(own.ids)


def _suite(folder: Path) -> None:
    for file in sorted(folder.glob("*.toml")):
        list(read_suite(file).cells())


def _resume(folder: Path) -> None:
    with RunFolder.create_or_resume(folder, sound.experiment().config(), resume=True) as store:
        if store.result is None:
            task = sound.learner().task
            resume = History(store).resume(task, sound.exam())
            if resume is not None:
                resume(sound.learner()).student.predict(task.graph)


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
    for node in range(len(model.node_names_)):
        explanation = model.explain(node)
        assert str(explanation)
        assert 0 <= explanation.confidence <= 1.000001
    # a file that was changed and sealed again may tell another score than its history, but it must be a score
    assert 0 <= model.validation_score_ <= 1
    assert 0 <= model.history_[model.best_iter_]["validation"][0] <= 1
    model.predict_proba()
    model.predict_proba(sound.graph().x.to_dense().numpy(), sound.graph().edge_index.numpy())


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
        tables.Encoding.from_dict(columns)


def _resume_fit(folder: Path) -> None:
    with RunFolder.create_or_resume(folder, {"fit": "small"}, resume=True) as store:
        model = sound.classifier(3).fit(**sound.few_labels(), checkpoints=FitCheckpoints(store))
        model.explain(0)
        assert 0 <= model.validation_score_ <= 1
        assert np.isfinite(model.predict_proba()).all()


def _store(folder: Path) -> None:
    store = Store.open(folder)
    with suppress(BangsError):
        store.verify()
    list(NodeNames(StoreReference.of(store)))
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
    assert int(data.y.max()) < data.get("num_classes", data.num_nodes)
