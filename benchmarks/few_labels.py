"""A few labels a class and nothing else: the default fit beside what a person would try first.

    BANGS_DATA=... python benchmarks/few_labels.py --graphs cora citeseer --labels 3 10 --draws 5 --json

Every cell is a graph and a number of labels a class; all other labels are hidden and only mark. The columns:
`sgc_lr` logistic regression on twice-propagated features, `propagation` label propagation on the graph, `sklearn`
scikit-learn's SelfTrainingClassifier on the same propagated features, `raw_gcn` a GCN without self-training, `old` the
fit of another checkout (`--base PATH`), `new` the default of `SelfTrainingClassifier`. Accuracy in percent and expected
calibration error (ten bins) on all hidden nodes. The summary holds what the issue asks for, with paired t-tests over
all draws of all cells. One JSON line a run goes to stderr, so that a run that was stopped is not lost; `--rows FILE`
reads such lines and goes on.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier as SklearnSelfTraining
from torch_geometric.data import Data

from bangs import SelfTrainingClassifier
from bangs.core import metrics
from bangs.core.types import Prediction
from bangs.graphs.datasets import by_name
from bangs.graphs.sparse import adjacency, to_scipy

DEVELOPMENT = (
    "cora",
    "citeseer",
    "pubmed",
    "amazon_computers",
    "coauthor_physics",
    "lastfm_asia_large",
    "citeseer_full",
    "uai2010",
    "flickr_social",
    "actor",
)
CLOSE = 0.5  # points within which a method counts as the best
OLD = """
import sys, numpy as np, torch
from bangs import SelfTrainingClassifier
data = torch.load(sys.argv[1], weights_only=False)
model = SelfTrainingClassifier(random_state=int(sys.argv[3]), device=sys.argv[4]).fit(data)
np.save(sys.argv[2], np.log(np.maximum(model.predict_proba(), 1e-30)))
"""


def unlabelled(name: str) -> tuple[Data, torch.Tensor]:
    """The graph without labels and splits, and the labels long [N]."""
    data = by_name.load(name)
    graph = Data(x=data.x, edge_index=data.edge_index, num_nodes=data.num_nodes)
    if data.get("edge_weight") is not None:
        graph.edge_weight = data.edge_weight
    return graph, data.y


def drawn(truth: torch.Tensor, count: int, seed: int) -> torch.Tensor:
    """`count` labels of every class, of small classes half: long [N], -1 = hidden."""
    draw = torch.Generator().manual_seed(seed)
    out = torch.full_like(truth, -1)
    for label in truth[truth >= 0].unique().tolist():
        nodes = (truth == label).nonzero().flatten()
        out[nodes[torch.randperm(len(nodes), generator=draw)[: max(min(count, len(nodes) // 2), 1)]]] = label
    return out


def propagated(graph: Data) -> Any:
    """Features after two hops, as scikit-learn takes them."""
    x: Any = to_scipy(graph.x) if graph.x.layout == torch.sparse_csr else graph.x.numpy()
    matrix = adjacency(graph, loops=1.0, normalise="symmetric")
    found: Any = matrix @ (matrix @ x)
    if not sp.issparse(found):
        return found
    return found.toarray() if found.nnz > 0.1 * np.prod(found.shape) else sp.csr_matrix(found)


def from_classes(probs: Any, own: Any, classes: int) -> torch.Tensor:
    """Log-probabilities [N, C] from those of the classes a model knows."""
    whole = np.full((len(probs), classes), 1e-12)
    whole[:, own] = probs
    return torch.from_numpy(np.log(np.maximum(whole, 1e-12)))


def sgc_lr(graph: Data, y: torch.Tensor, classes: int, seed: int, args: Any) -> torch.Tensor:
    x, known = args.cache(graph), (y >= 0).numpy()
    model = LogisticRegression(max_iter=1000).fit(x[known], y.numpy()[known])
    return from_classes(model.predict_proba(x), model.classes_, classes)


def sklearn(graph: Data, y: torch.Tensor, classes: int, seed: int, args: Any) -> torch.Tensor:
    x = args.cache(graph)
    model = SklearnSelfTraining(LogisticRegression(max_iter=200)).fit(x, y.numpy())
    return from_classes(model.predict_proba(x), model.classes_, classes)


def propagation(graph: Data, y: torch.Tensor, classes: int, seed: int, args: Any) -> torch.Tensor:
    matrix = adjacency(graph, loops=0.0, normalise="symmetric")
    start = np.zeros((len(y), classes), np.float32)
    known = (y >= 0).numpy()
    start[known, y.numpy()[known]] = 1
    found = start
    for _ in range(50):
        found = 0.9 * (matrix @ found) + 0.1 * start
    found = found + 1e-9
    return torch.from_numpy(np.log(found / found.sum(1, keepdims=True)))


def raw_gcn(graph: Data, y: torch.Tensor, classes: int, seed: int, args: Any) -> torch.Tensor:
    return _bangs(graph, y, classes, seed, args, model="gcn", method="raw", validation=0.25, calibrator="none")


def new(graph: Data, y: torch.Tensor, classes: int, seed: int, args: Any) -> torch.Tensor:
    return _bangs(graph, y, classes, seed, args)


def old(graph: Data, y: torch.Tensor, classes: int, seed: int, args: Any) -> torch.Tensor:
    """The default fit of another checkout, in a process of its own."""
    folder = Path(args.scratch)
    data = graph.clone()
    data.y = y
    torch.save(data, folder / "graph.pt")
    words = [sys.executable, "-c", OLD, str(folder / "graph.pt"), str(folder / "said.npy"), str(seed), args.device]
    env = {**os.environ, "PYTHONPATH": str(Path(args.base) / "src")}
    subprocess.run(words, check=True, env=env, cwd=folder)
    own = y[y >= 0].unique().numpy()
    return from_classes(np.exp(np.load(folder / "said.npy")), own, classes)


def _bangs(graph: Data, y: torch.Tensor, classes: int, seed: int, args: Any, **settings: Any) -> torch.Tensor:
    data = graph.clone()
    data.y = y
    model = SelfTrainingClassifier(device=args.device, random_state=seed, **settings).fit(data)
    return from_classes(model.predict_proba(), model.classes_, classes)


METHODS: dict[str, Callable[..., torch.Tensor]] = {
    "sgc_lr": sgc_lr,
    "propagation": propagation,
    "sklearn": sklearn,
    "raw_gcn": raw_gcn,
    "old": old,
    "new": new,
}


def run(name: str, count: int, draw: int, method: str, graph: Data, truth: torch.Tensor, args: Any) -> dict[str, Any]:
    y = drawn(truth, count, draw)
    classes = int(truth.max()) + 1
    began = time.perf_counter()
    said = Prediction(METHODS[method](graph, y, classes, draw, args)[None])
    seconds = time.perf_counter() - began
    hidden = torch.where((y < 0) & (truth >= 0), truth, -1)[None]
    return {
        "graph": name,
        "labels": count,
        "draw": draw,
        "method": method,
        "accuracy": 100 * float(metrics.accuracy(said, hidden)),
        "error": float(metrics.calibration_error(said, hidden, 10)),
        "seconds": round(seconds, 2),
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Cells with means over draws, and the figures the issue asks for."""
    cells: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cells[row["graph"], row["labels"]][row["method"]].append(row)
    table, best, gains, tests = [], [], [], {}
    for (graph, labels), by_method in sorted(cells.items()):
        line = {
            name: {part: round(fmean(row[part] for row in own), 4) for part in ("accuracy", "error", "seconds")}
            for name, own in by_method.items()
        }
        table.append({"graph": graph, "labels": labels, **line})
        if "new" in line and len(line) > 1:
            rivals = max(own["accuracy"] for name, own in line.items() if name != "new")
            best.append(line["new"]["accuracy"] >= rivals - CLOSE)
            if "sgc_lr" in line:
                gains.append(line["new"]["accuracy"] - line["sgc_lr"]["accuracy"])
    for rival in {row["method"] for row in rows} - {"new"}:
        key = {(row["graph"], row["labels"], row["draw"]): row["accuracy"] for row in rows if row["method"] == rival}
        pairs = [
            (row["accuracy"], key[where])
            for row in rows
            if row["method"] == "new" and (where := (row["graph"], row["labels"], row["draw"])) in key
        ]
        if len(pairs) > 1:
            mine, other = zip(*pairs, strict=True)
            test = stats.ttest_rel(mine, other)
            tests[rival] = {
                "gain": round(fmean(mine) - fmean(other), 3),
                "pairs": len(pairs),
                "p": float(test.pvalue),
            }
    own = [line["new"]["error"] for line in table if "new" in line]
    return {
        "cells": len(best),
        "best_or_close": round(fmean(best), 3) if best else None,
        "gain_over_sgc_lr": round(fmean(gains), 2) if gains else None,
        "worst_gain_over_sgc_lr": round(min(gains), 2) if gains else None,
        "calibration_error": round(fmean(own), 4) if own else None,
        "paired": tests,
        "table": table,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=list(DEVELOPMENT))
    parser.add_argument("--labels", nargs="+", type=int, default=[3, 5, 10, 20])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=None, choices=list(METHODS))
    parser.add_argument("--base", help="a checkout whose default fit is the column `old`")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=Path, help="lines of an earlier run, which is gone on with")
    parser.add_argument("--scratch", default="/tmp")
    parser.add_argument("--json", action="store_true", help="one JSON object to stdout")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    methods = args.methods or [name for name in METHODS if name != "old" or args.base]
    if args.device == "cpu":
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    rows = [json.loads(line) for line in args.rows.read_text().splitlines()] if args.rows else []
    done = {(row["graph"], row["labels"], row["draw"], row["method"]) for row in rows}
    for name in args.graphs:
        graph, truth = unlabelled(name)
        kept: list[Any] = []

        def cache(own: Data, kept: list[Any] = kept) -> Any:
            if not kept:
                kept.append(propagated(own))
            return kept[0]

        args.cache = cache
        for count in args.labels:
            for draw in range(args.draws):
                for method in methods:
                    if (name, count, draw, method) not in done:
                        rows.append(run(name, count, draw, method, graph, truth, args))
                        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    found = summary(rows)
    if args.json:
        print(json.dumps(found))
        return
    for line in found["table"]:
        cells = "  ".join(
            f"{name} {own['accuracy']:.1f}/{own['error']:.3f}" for name, own in line.items() if isinstance(own, dict)
        )
        print(f"{line['graph']:<20} {line['labels']:>3}  {cells}")
    print({name: value for name, value in found.items() if name != "table"})


if __name__ == "__main__":
    main()
