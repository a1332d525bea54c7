"""A few labels a class and nothing else: the default fit beside what a person would try first.

    BANGS_DATA=... python benchmarks/few_labels.py --graphs cora citeseer --labels 3 10 --draws 5 --json
    BANGS_DATA=... python benchmarks/few_labels.py --jobs 16 --old CHECKOUT --rows rows.jsonl --json
    BANGS_DATA=... python benchmarks/few_labels.py --settings --methods sgc_lr old new --old CHECKOUT --draws 2

Every cell is a graph and a number of labels a class; all other labels are hidden. A third of the nodes, the same in
every draw, chose the settings of the default fit and marks nothing here; the other hidden labels only mark. Columns:
`sgc_lr` logistic regression on twice-propagated features, `propagation` label propagation on the graph, `sklearn`
scikit-learn's SelfTrainingClassifier on the same propagated features (on their first 300 principal directions where
they are more than 50 million numbers, since it takes hours there), `raw_gcn` a GCN without self-training, `old` the fit
of another checkout (`--old PATH`), `new` the default of `SelfTrainingClassifier`. Accuracy in percent and expected
calibration error (ten bins). The summary holds what the issue asks for, with paired t-tests over all draws of all
cells. `--jobs` runs so many processes of one thread each. Every finished run is a line added to `--rows` at once
(to stderr without that option); runs that the file holds are not done again. With `--settings` the nodes that chose
settings mark, and no others, on draws from 110 on: so a change is judged before the others are looked at.
"""

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy import stats
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier as SklearnSelfTraining
from torch_geometric.data import Data

from bangs import SelfTrainingClassifier
from bangs.core import metrics
from bangs.core.types import Prediction
from bangs.graphs.datasets import loading
from bangs.graphs.sparse import adjacency, to_scipy
from measuring import DEVELOPMENT, page

Key = tuple[str, int, int, str]  # graph, labels a class, draw, method

SLOW = ("coauthor_physics", "flickr_social", "amazon_computers", "pubmed")  # these first, so that no job ends late
FIRST = 110  # draw by which settings are chosen
CLOSE = 0.5  # points within which a method counts as the best
LARGE, DIRECTIONS = 50_000_000, 300
OLD = """
import sys, numpy as np, torch
from bangs import SelfTrainingClassifier
data = torch.load(sys.argv[1], weights_only=False)
model = SelfTrainingClassifier(random_state=int(sys.argv[3]), device=sys.argv[4]).fit(data)
np.save(sys.argv[2], np.log(np.maximum(model.predict_proba(), 1e-30)))
"""


@lru_cache(maxsize=1)
def unlabelled(name: str) -> tuple[Data, torch.Tensor]:
    """The graph without labels and splits, and the labels long [N]."""
    data = loading.load(name)
    graph = Data(x=data.x, edge_index=data.edge_index, num_nodes=data.num_nodes)
    if data.get("edge_weight") is not None:
        graph.edge_weight = data.edge_weight
    return graph, data.y


def chose_settings(nodes: int) -> torch.Tensor:
    """The third of the nodes whose labels may choose settings: bool [N]."""
    third = torch.zeros(nodes, dtype=torch.bool)
    third[torch.randperm(nodes, generator=torch.Generator().manual_seed(777))[: nodes // 3]] = True
    return third


def drawn(truth: torch.Tensor, count: int, seed: int) -> torch.Tensor:
    """`count` labels of every class, of small classes half: long [N], -1 = hidden."""
    draw = torch.Generator().manual_seed(seed)
    out = torch.full_like(truth, -1)
    for label in truth[truth >= 0].unique().tolist():
        nodes = (truth == label).nonzero().flatten()
        out[nodes[torch.randperm(len(nodes), generator=draw)[: max(min(count, len(nodes) // 2), 1)]]] = label
    return out


@lru_cache(maxsize=1)
def propagated(name: str) -> Any:
    """Features after two hops, as scikit-learn takes them."""
    graph, _ = unlabelled(name)
    x: Any = to_scipy(graph.x) if graph.x.layout == torch.sparse_csr else graph.x.numpy()
    matrix = adjacency(graph, loops=1.0, normalise="symmetric")
    x_out: Any = matrix @ (matrix @ x)
    if not sp.issparse(x_out):
        return x_out
    return x_out.toarray() if x_out.nnz > 0.1 * np.prod(x_out.shape) else sp.csr_matrix(x_out)


@lru_cache(maxsize=1)
def shortened(name: str) -> Any:
    """The same, of very many only the first principal directions."""
    x = propagated(name)
    if np.prod(x.shape) <= LARGE:
        return x
    return TruncatedSVD(DIRECTIONS, random_state=0).fit_transform(x)


def from_classes(probs: Any, known: Any, classes: int) -> torch.Tensor:
    """Log-probabilities [N, C] from those of the classes a model knows."""
    full = np.full((len(probs), classes), 1e-12)
    full[:, known] = probs
    return torch.from_numpy(np.log(np.maximum(full, 1e-12)))


def sgc_lr(name: str, y: torch.Tensor, classes: int, seed: int, args: Any) -> torch.Tensor:
    x, known = propagated(name), (y >= 0).numpy()
    model = LogisticRegression(max_iter=1000).fit(x[known], y.numpy()[known])
    return from_classes(model.predict_proba(x), model.classes_, classes)


def sklearn(name: str, y: torch.Tensor, classes: int, seed: int, args: Any) -> torch.Tensor:
    x = shortened(name)
    model = SklearnSelfTraining(LogisticRegression(max_iter=200)).fit(x, y.numpy())
    return from_classes(model.predict_proba(x), model.classes_, classes)


def propagation(name: str, y: torch.Tensor, classes: int, seed: int, args: Any) -> torch.Tensor:
    matrix = adjacency(unlabelled(name)[0], loops=0.0, normalise="symmetric")
    start = np.zeros((len(y), classes), np.float32)
    known = (y >= 0).numpy()
    start[known, y.numpy()[known]] = 1
    spread = start
    for _ in range(50):
        spread = 0.9 * (matrix @ spread) + 0.1 * start
    spread = spread + 1e-9
    return torch.from_numpy(np.log(spread / spread.sum(1, keepdims=True)))


def raw_gcn(name: str, y: torch.Tensor, classes: int, seed: int, args: Any) -> torch.Tensor:
    return _bangs(name, y, classes, seed, args, model="gcn", method="raw", validation=0.25, calibrator="none")


def new(name: str, y: torch.Tensor, classes: int, seed: int, args: Any) -> torch.Tensor:
    return _bangs(name, y, classes, seed, args)


def old(name: str, y: torch.Tensor, classes: int, seed: int, args: Any) -> torch.Tensor:
    """The default fit of another checkout, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/said.npy"
        torch.save(with_labels(name, y), f"{folder}/graph.pt")
        command = [sys.executable, "-c", OLD, f"{folder}/graph.pt", output, str(seed), args.device]
        env = {**os.environ, "PYTHONPATH": str(Path(args.old).resolve() / "src")}
        subprocess.run(command, check=True, env=env, cwd=folder)
        return from_classes(np.exp(np.load(output)), y[y >= 0].unique().numpy(), classes)


def _bangs(name: str, y: torch.Tensor, classes: int, seed: int, args: Any, **settings: Any) -> torch.Tensor:
    model = SelfTrainingClassifier(device=args.device, random_state=seed, **settings).fit(with_labels(name, y))
    return from_classes(model.predict_proba(), model.classes_, classes)


def with_labels(name: str, y: torch.Tensor) -> Data:
    data = unlabelled(name)[0].clone()
    data.y = y
    return data


METHODS: dict[str, Callable[..., torch.Tensor]] = {
    "sgc_lr": sgc_lr,
    "propagation": propagation,
    "sklearn": sklearn,
    "raw_gcn": raw_gcn,
    "old": old,
    "new": new,
}
METHODS_ORDER = list(METHODS)
HEADS = {
    "sgc_lr": "SGC + logistic regression",
    "propagation": "label propagation",
    "sklearn": "scikit-learn's self-training",
    "raw_gcn": "GCN",
    "old": "fit before",
    "new": "default fit",
}
ROWS = Path(__file__).with_name("rows") / "few_labels.jsonl"
ABOUT = """
Ten graphs, 3 to 20 labels a class, accuracy in percent on hidden nodes. The page [Few labels](../few-labels.md)
explains the default fit.

- **Bold**: within 0.5 points of the best of the row.
- **ECE**: the expected calibration error (ten bins) of the default fit.
- **fit before**: the default fit of commit a5efed3.
- Numbers are means of five draws of labels. Where a column has fewer draws, the brackets have the difference to the
  default fit on the same draws.
- A third of the nodes of each graph chose the settings. Those nodes are not counted here.
- The APPNP joined last. On the nodes that choose settings it gains 0.6 points in the mean of 40 fits of the five
  small graphs, against commit 08f9113 (`--settings --methods old new --draws 2`): 3.2 on CiteSeer full, 0.3 on LastFM
  Asia, nothing on Cora and CiteSeer. On Actor it loses 0.6, and the calibration error grows by 0.04. On the nodes
  counted here it gains 1.3 on CiteSeer full and loses 0.1 in the mean of the other four.
- Since commit 9d8ab93 an APPNP is stopped only if it is clearly behind after a temperature. On the nodes that choose
  settings, that changes accuracy by -0.02 points and the calibration error by -0.0014 in the mean of the same 40 fits,
  in which 32 APPNPs instead of 28 get weight; on the nodes counted here by -0.02 and +0.0002.
- Commits and machines are in `benchmarks/rows/README.md`.
"""


def run(key: Key, args: Any) -> dict[str, Any]:
    """The row of one fit."""
    name, count, draw, method = key
    _, truth = unlabelled(name)
    y = drawn(truth, count, draw)
    classes = int(truth.max()) + 1
    began, busy = time.perf_counter(), _busy()
    prediction = Prediction(METHODS[method](name, y, classes, draw, args)[None])
    seconds, busy = time.perf_counter() - began, _busy() - busy
    marking = chose_settings(len(truth)) == args.settings
    marks = torch.where((y < 0) & (truth >= 0) & marking, truth, -1)[None]
    return {
        "graph": name,
        "labels": count,
        "draw": draw,
        "method": method,
        "accuracy": round(100 * float(metrics.accuracy(prediction, marks)), 4),
        "error": round(float(metrics.calibration_error(prediction, marks, 10)), 5),
        "log_likelihood": round(float(metrics.log_likelihood(prediction, marks)), 4),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(busy, 2),
    }


def _busy() -> float:
    """Seconds of work of all cores so far, of this process and of those that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _job(task: tuple[Key, Any]) -> dict[str, Any]:
    warnings.filterwarnings("ignore")
    if task[1].jobs > 1:
        torch.set_num_threads(1)
    try:
        return run(*task)
    except Exception as error:  # one fit that fails must not end the others
        return dict(zip(("graph", "labels", "draw", "method"), task[0], strict=True)) | {"failed": repr(error)[:300]}


def runs(keys: list[Key], args: Any) -> Iterator[dict[str, Any]]:
    """The rows of the keys, as they come."""
    tasks = [(key, args) for key in keys]
    if args.jobs == 1:
        yield from map(_job, tasks)
        return
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        yield from pool.imap_unordered(_job, tasks)


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Cells with means over draws, and the figures the issue asks for."""
    cells: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cells[row["graph"], row["labels"]][row["method"]].append(row)
    table, best, gains, tests = [], [], [], {}
    for (graph, labels), by_method in sorted(cells.items()):
        line = {
            name: {part: round(fmean(row[part] for row in group), 4) for part in ("accuracy", "error", "seconds")}
            for name, group in by_method.items()
        }
        table.append({"graph": graph, "labels": labels, **line})
        if "new" in line and len(line) > 1:
            for name, group in by_method.items():
                line[name]["draws"] = len(group)
                line[name]["ahead"] = _ahead(group, by_method["new"])
            best.append(max(group["ahead"] for group in line.values()) <= CLOSE)
            if "sgc_lr" in line:
                gains.append(-line["sgc_lr"]["ahead"])
    for rival in {row["method"] for row in rows} - {"new"}:
        key = {(row["graph"], row["labels"], row["draw"]): row["accuracy"] for row in rows if row["method"] == rival}
        pairs = [
            (row["accuracy"], key[where])
            for row in rows
            if row["method"] == "new" and (where := (row["graph"], row["labels"], row["draw"])) in key
        ]
        if len(pairs) > 1:
            new_scores, other = zip(*pairs, strict=True)
            test = stats.ttest_rel(new_scores, other)
            tests[rival] = {
                "gain": round(fmean(new_scores) - fmean(other), 3),
                "pairs": len(pairs),
                "p": float(test.pvalue),
            }
    errors = [line["new"]["error"] for line in table if "new" in line]
    return {
        "cells": len(best),
        "best_or_close": round(fmean(best), 3) if best else None,
        "gain_over_sgc_lr": round(fmean(gains), 2) if gains else None,
        "worst_gain_over_sgc_lr": round(min(gains), 2) if gains else None,
        "calibration_error": round(fmean(errors), 4) if errors else None,
        "paired": tests,
        "table": table,
    }


def _ahead(rival: list[dict[str, Any]], new: list[dict[str, Any]]) -> float:
    """By how many points a method is ahead of the new fit, over the draws that both have."""
    theirs, ours = ({row["draw"]: row["accuracy"] for row in rows} for rows in (rival, new))
    both = sorted(theirs.keys() & ours.keys())
    return round(fmean(theirs[draw] - ours[draw] for draw in both), 4) if both else 0.0


def page_table(result: dict[str, Any]) -> str:
    """The cells as a Markdown table: accuracy, and calibration error of the new fit."""
    names = [name for name in METHODS if any(name in line for line in result["table"])]
    lines = [f"| graph | labels | {' | '.join(HEADS[name] for name in names)} | ECE |", "|---" * (len(names) + 3) + "|"]
    for line in result["table"]:
        best = max(line[name]["ahead"] for name in names if name in line)
        cells = []
        for name in names:
            if name not in line:
                cells.append("–")
                continue
            fewer = line[name]["draws"] < line["new"]["draws"]
            value = f"{line[name]['accuracy']:.1f}" + (f" ({line[name]['ahead']:+.1f})" if fewer else "")
            cells.append(f"**{value}**" if line[name]["ahead"] >= best - CLOSE else value)
        error = f"{line['new']['error']:.3f}" if "new" in line else "–"
        lines.append(f"| {line['graph']} | {line['labels']} | {' | '.join(cells)} | {error} |")
    tests = ", ".join(
        f"{test['gain']:+.1f} over {HEADS[name]} (p = {test['p']:.0e}, {test['pairs']} pairs)"
        for name, test in sorted(result["paired"].items(), key=lambda test: METHODS_ORDER.index(test[0]))
    )
    return "\n".join(
        [
            *lines,
            "",
            f"{result['cells']} cells. The default fit is the best or within {CLOSE} points of the best in "
            f"{result['best_or_close']:.0%} of them. Against logistic regression it gains "
            f"{result['gain_over_sgc_lr']:+.1f} points in the mean, {result['worst_gain_over_sgc_lr']:+.1f} in its "
            f"worst cell. Its mean calibration error is {result['calibration_error']:.3f}. "
            f"Paired over all draws: {tests}.",
        ]
    )


def written(result: dict[str, Any]) -> str:
    """The page of all graphs."""
    options = "--draws 0 --rows benchmarks/rows/few_labels.jsonl --page docs/results/few-labels.md"
    return page(
        "Few labels on ten graphs", f"python benchmarks/few_labels.py {options}", ABOUT.strip(), page_table(result)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=list(DEVELOPMENT))
    parser.add_argument("--labels", nargs="+", type=int, default=[3, 5, 10, 20])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=None, choices=list(METHODS))
    parser.add_argument("--old", help="a checkout whose default fit is the column `old`")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each")
    parser.add_argument("--rows", type=Path, help="a file of rows, which is gone on with")
    parser.add_argument("--page", type=Path, help="write the page of the documentation; --draws 0 runs nothing")
    parser.add_argument("--settings", action="store_true", help="mark the nodes that chose settings, on other draws")
    parser.add_argument("--json", action="store_true", help="one JSON object to stdout")
    args = parser.parse_args()
    methods = args.methods or [name for name in METHODS if name != "old" or args.old]
    rows = []
    if args.rows and args.rows.exists():
        rows = [json.loads(line) for line in args.rows.read_text().splitlines()]
    done = {(row["graph"], row["labels"], row["draw"], row["method"]) for row in rows}
    graphs = sorted(args.graphs, key=lambda name: SLOW.index(name) if name in SLOW else len(SLOW))
    first = FIRST if args.settings else 0
    keys = [
        (name, count, draw, method)
        for draw in range(first, first + args.draws)  # a run that is stopped has whole draws
        for name in graphs
        for count in args.labels
        for method in methods
    ]
    for row in runs([key for key in keys if key not in done], args):
        print(json.dumps(row), file=sys.stderr, flush=True)
        if "failed" in row:
            continue
        rows.append(row)
        if args.rows:
            with args.rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
    result = summary(rows)
    if args.page:
        args.page.write_text(written(result))
    if args.json:
        print(json.dumps(result))
        return
    for line in result["table"]:
        cells = "  ".join(
            f"{name} {cell['accuracy']:.1f}/{cell['error']:.3f}"
            for name, cell in line.items()
            if isinstance(cell, dict)
        )
        print(f"{line['graph']:<20} {line['labels']:>3}  {cells}")
    print({name: value for name, value in result.items() if name != "table"})


if __name__ == "__main__":
    main()
