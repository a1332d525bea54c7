"""Uneven labels: the default fit beside other class weights and scikit-learn, where labels are few and unequal.

    BANGS_DATA=... python benchmarks/uneven_labels.py --rows benchmarks/rows/uneven_labels.jsonl
    python benchmarks/uneven_labels.py --draws 0 --rows benchmarks/rows/uneven_labels.jsonl --page PAGE

Labels come in two ways. `20:3` and `60:10`: that many of one class, drawn at random, and of every other class. `sample
10` and `sample 30`: a random sample of the nodes, that many times the number of classes. `rare 50` and `rare 100`: the
same for the smallest class of the graph against all others. Methods: logistic regression on twice-propagated features
with scikit-learn's `class_weight="balanced"` (`sgc_lr`), and the default fit with three settings of `class_weight`.
Accuracy and the mean of the classes' recalls in percent, and expected calibration error, on the nodes that chose no
setting; with `--settings` on the others, on other draws.
"""

import argparse
import json
import sys
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from sklearn.linear_model import LogisticRegression

from bangs import SelfTrainingClassifier
from bangs.core import metrics
from bangs.core.types import Prediction
from few_labels import FIRST, chose_settings, from_classes, propagated, unlabelled, with_labels
from measuring import page

GRAPHS = ("cora", "citeseer", "lastfm_asia_large", "citeseer_full", "uai2010")
SCHEMES = ("20:3", "60:10", "sample 10", "sample 30", "rare 50", "rare 100")
METHODS = {"sgc_lr": "SGC + logistic regression, balanced", "none": "none", "balanced": "balanced", "auto": "auto"}
PARTS = {"accuracy": 1, "recall": 1, "error": 3}  # digits after the point
ROWS = Path(__file__).with_name("rows") / "uneven_labels.jsonl"
ABOUT = """
Few labels, and not the same number of each class: what the setting `class_weight` of `bangs fit` does. The page
[Few labels](../few-labels.md) explains it.

- **20:3**: 20 labels of one class, drawn at random, and 3 of every other class. **60:10** likewise.
- **sample 10**: a random sample of the nodes, 10 times the number of classes. **sample 30** likewise.
- **rare 50**: only two classes, the smallest class of the graph and all others, and a random sample of 100 nodes.
  **rare 100** likewise, 200 nodes. Samples without the smallest class are left out.
- **auto** is the default. Every cell is accuracy / mean recall of the classes in percent / expected calibration error,
  the mean of two draws on nodes that chose no setting.
"""


@lru_cache(maxsize=8)
def truth_of(graph: str, rare: bool) -> torch.Tensor:
    """The classes long [N]; with `rare` 1 for the smallest class and 0 for the others."""
    truth = unlabelled(graph)[1]
    return (truth == int(truth[truth >= 0].bincount().argmin())).long() if rare else truth


def drawn(truth: torch.Tensor, scheme: str, seed: int) -> torch.Tensor:
    """The labels of a scheme: long [N], -1 = hidden."""
    draw, out = torch.Generator().manual_seed(seed), torch.full_like(truth, -1)
    classes = truth[truth >= 0].unique().tolist()
    if ":" not in scheme:
        nodes = (truth >= 0).nonzero().flatten()
        chosen = nodes[torch.randperm(len(nodes), generator=draw)[: int(scheme.split()[1]) * len(classes)]]
        out[chosen] = truth[chosen]
        return out
    many, few = map(int, scheme.split(":"))
    largest = classes[int(torch.randint(len(classes), (1,), generator=draw))]
    for label in classes:
        nodes = (truth == label).nonzero().flatten()
        count = min(many if label == largest else few, max(len(nodes) // 2, 1))
        out[nodes[torch.randperm(len(nodes), generator=draw)[:count]]] = label
    return out


def run(graph: str, scheme: str, draw: int, method: str, settings: bool) -> dict[str, Any]:
    """The row of one fit."""
    truth = truth_of(graph, scheme.startswith("rare"))
    y, classes = drawn(truth, scheme, draw), int(truth.max()) + 1
    if method == "sgc_lr":
        x, known = propagated(graph), (y >= 0).numpy()
        model = LogisticRegression(max_iter=1000, class_weight="balanced").fit(x[known], y.numpy()[known])
        logits = from_classes(model.predict_proba(x), model.classes_, classes)
    else:
        weight: Any = None if method == "none" else method
        fit = SelfTrainingClassifier(class_weight=weight, device="cpu", random_state=draw).fit(with_labels(graph, y))
        logits = from_classes(fit.predict_proba(), fit.classes_, classes)
    marked = (y < 0) & (truth >= 0) & (chose_settings(len(truth)) == settings)
    correct, target = (logits.argmax(1) == truth)[marked], truth[marked]
    marks = torch.where(marked, truth, -1)[None]
    return {
        "graph": graph,
        "scheme": scheme,
        "draw": draw,
        "method": method,
        "accuracy": round(100 * float(correct.double().mean()), 4),
        "recall": round(100 * fmean(float(correct[target == c].double().mean()) for c in target.unique().tolist()), 4),
        "error": round(float(metrics.calibration_error(Prediction(logits[None]), marks, 10)), 5),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The means over draws as a Markdown table, and those over all graphs of a scheme."""
    cells: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cells[row["scheme"], row["graph"]][row["method"]].append(row)
        cells[row["scheme"], "mean"][row["method"]].append(row)
    lines = [f"| labels | graph | {' | '.join(METHODS.values())} |", "|---" * (len(METHODS) + 2) + "|"]
    for scheme, graph in sorted(cells, key=lambda key: (SCHEMES.index(key[0]), key[1] == "mean", key[1])):
        cell = cells[scheme, graph]
        shown = [
            " / ".join(f"{fmean(row[part] for row in cell[name]):.{digits}f}" for part, digits in PARTS.items())
            if cell[name]
            else "–"
            for name in METHODS
        ]
        lines.append(f"| {scheme} | {graph} | {' | '.join(shown)} |")
    return "\n".join(lines)


def written(rows: list[dict[str, Any]]) -> str:
    """The page of the documentation."""
    options = "--draws 0 --rows benchmarks/rows/uneven_labels.jsonl --page docs/results/uneven-labels.md"
    return page("Uneven labels", f"python benchmarks/uneven_labels.py {options}", ABOUT.strip(), table(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS))
    parser.add_argument("--schemes", nargs="+", default=list(SCHEMES), choices=SCHEMES)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--rows", type=Path, help="a file of rows; runs that it holds are not done again")
    parser.add_argument("--page", type=Path, help="write the page of the documentation; --draws 0 runs nothing")
    parser.add_argument("--settings", action="store_true", help="mark the nodes that chose settings, on other draws")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = [json.loads(line) for line in args.rows.read_text().splitlines()] if args.rows and args.rows.exists() else []
    done = {(row["graph"], row["scheme"], row["draw"], row["method"]) for row in rows}
    first = FIRST if args.settings else 0
    for draw in range(first, first + args.draws):
        for graph in args.graphs:
            for scheme in args.schemes:
                y = drawn(truth_of(graph, scheme.startswith("rare")), scheme, draw)
                if len(y[y >= 0].unique()) < 2:
                    continue  # a sample without the rare class teaches nothing
                for method in args.methods:
                    if (graph, scheme, draw, method) in done:
                        continue
                    rows.append(run(graph, scheme, draw, method, args.settings))
                    print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
                    if args.rows:
                        with args.rows.open("a") as file:
                            file.write(json.dumps(rows[-1]) + "\n")
    if args.page:
        args.page.write_text(written(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
