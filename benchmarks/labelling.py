"""Which node to label next: learning curves of every strategy beside random, with the truth as the expert.

    BANGS_DATA=... OMP_NUM_THREADS=1 python benchmarks/labelling.py --jobs 16 --rows DIR
    python benchmarks/labelling.py --rows DIR --summary validation
    python benchmarks/labelling.py --rows DIR --summary test --figure docs/figures/labelling.svg
    python benchmarks/labelling.py --rows benchmarks/rows --summary test --page docs/results/labelling.md

Every cell is a graph, a draw and a strategy. A draw deals the nodes: one half may be labelled, a quarter is the
validation set and a quarter the test set, and neither of the two is ever labelled, so that all strategies are judged
on the same nodes. It starts with 2 labels a class (of small classes fewer), drawn at random; then come 5 batches of
as many labels as there are classes. After every batch the model is fitted again and judged. The model is that of the
default fit without self-training: logistic regression on features as they are, after two hops and after personalised
PageRank, in 4 folds, averaged by what they say of labels they have not learned. Of a graph with more than 5,000 nodes
in a set, 5,000 drawn ones judge. `random` is the mean of 5 repetitions a draw.

A strategy is chosen by the validation rows alone. Accuracies on test nodes go to a file of their own,
labelling-test.jsonl, which nothing reads until `--summary test`. A cell that has a row is not run again.
"""

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.types import Labels, Task
from bangs.estimator.candidates import linear_candidates
from bangs.estimator.folds import DEFAULT_FOLDS, Folds, mean_of_runs, unseen_prediction
from bangs.estimator.linear import LinearLearner
from bangs.estimator.stacking import mixture, stacking_weights
from bangs.experiments.tables.significance import LEVEL, Comparison, holm, paired
from bangs.graphs.datasets import loading
from bangs.selftraining.budget import Budget
from bangs.selftraining.methods import method
from bangs.suggestion.batches import batch
from bangs.suggestion.node_vectors import merged
from bangs.suggestion.strategies import DEFAULT, STRATEGIES
from bangs.suggestion.strategy_input import StrategyInput
from measuring import DEVELOPMENT, page

START, BATCHES = 2, 5  # labels a class, and batches of one label a class
JUDGES = 5000  # nodes that judge, at most
REPEATED = {"random": 5}  # repetitions of strategies that draw
HALVES = ("validation", "test")
ABOUT = """
The page [Label the next nodes](../labelling.md) explains the command. The default was chosen on validation nodes of
ten graphs, before anyone looked at test nodes. Every draw starts with 2 labels a class and asks for 5 batches of one
label per class. Commits and machines are in `benchmarks/rows/README.md`.

- **points over random**: the area under the accuracy curve on test nodes, less that of random choice; {draws} draws.
- **graphs above, below**: by paired t-tests with Holm's correction.
- **labels saved**: the share of the asked labels that a strategy does not need to reach the last accuracy of random
  choice.
"""


@lru_cache(maxsize=1)
def opened(name: str) -> tuple[Data, Tensor, list[LinearLearner]]:
    """The graph without labels, the labels long [N], and a learner of every kind with its propagated features."""
    data = loading.load(name)
    graph = Data(x=data.x, edge_index=data.edge_index, num_nodes=data.num_nodes)
    if data.get("edge_weight") is not None:
        graph.edge_weight = data.edge_weight
    classes = int(data.y.max()) + 1
    none = torch.full((DEFAULT_FOLDS, len(data.y)), -1)
    task = Task(graph, Labels.given(none), none, classes)
    candidates = linear_candidates(graph, method("raw", Budget()), "raw", ["features"])
    return graph, data.y, [candidate.trainer.prepare(task) for candidate in candidates]  # type: ignore[union-attr,misc]


def dealt(truth: Tensor, draw: int) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """The nodes that may be labelled, bool [N], those that judge, long, and the first labels, long [N]."""
    rng = np.random.default_rng(1000 + draw)
    order = torch.from_numpy(rng.permutation(len(truth)))
    order = order[truth[order] >= 0]
    half, quarter = len(order) // 2, len(order) * 3 // 4
    pool = torch.zeros(len(truth), dtype=torch.bool)
    pool[order[:half]] = True
    judges = {"validation": order[half:quarter][:JUDGES], "test": order[quarter:][:JUDGES]}
    label = torch.full_like(truth, -1)
    for class_ in truth[pool].unique().tolist():
        nodes = order[:half][truth[order[:half]] == class_]
        label[nodes[: max(min(START, len(nodes) // 2), 1)]] = class_
    return pool, judges, label


def fitted(learners: list[LinearLearner], label: Tensor, draw: int) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities [N, C], the disagreement of the models [N], and the points of the nodes [N, d]."""
    folds = Folds.of(label, DEFAULT_FOLDS, draw)
    given, held = folds.given, folds.held
    if folds.runs < DEFAULT_FOLDS:
        given = given[torch.arange(DEFAULT_FOLDS) % folds.runs]
        held = held[torch.arange(DEFAULT_FOLDS) % folds.runs]
    means, label_probs, negative_entropies = [], [], []
    held_out = held.amax(0)
    held_out = held_out[held_out >= 0]
    for learner in learners:
        teacher = learner.fit(Labels.given(given), None)  # type: ignore[arg-type]
        prediction = learner.predict(teacher.weights, learner.task.graph)
        means.append(mean_of_runs(prediction).logits[0])
        p = prediction.logits.softmax(-1)
        negative_entropies.append((p * p.clamp_min(1e-12).log()).sum(-1).mean(0))
        unseen = unseen_prediction(prediction, held).logits[0].log_softmax(-1)
        label_probs.append(unseen.gather(1, held_out[:, None])[:, 0].exp())
    weights = (
        stacking_weights(torch.stack(label_probs)) if folds.has_held_out else torch.full((len(means),), 1 / len(means))
    )
    probs = mixture(means, weights).softmax(-1)
    mean_negative_entropy = sum(
        weight * value for weight, value in zip(weights.tolist(), negative_entropies, strict=True)
    )
    disagreement = (-(probs * probs.clamp_min(1e-12).log()).sum(1) + mean_negative_entropy).clamp_min(0)
    used = [number for number, weight in enumerate(weights.tolist()) if weight > 0]
    return probs, disagreement, merged([learners[n].inputs for n in used], [float(weights[n]) for n in used])


def curve(name: str, draw: int, strategy: str, repetition: int) -> dict[str, Any]:
    """Accuracy after the first labels and after every batch, in percent, on both sets."""
    torch.set_num_threads(1)
    graph, truth, learners = opened(name)
    pool, judges, label = dealt(truth, draw)
    classes = int(truth.max()) + 1
    rng = np.random.default_rng((draw, repetition))
    accuracy: dict[str, list[float]] = {half: [] for half in HALVES}
    counts, seconds = [], 0.0
    for step in range(BATCHES + 1):
        probs, disagreement, points = fitted(learners, label, draw)
        counts.append(int((label >= 0).sum()))
        for half, nodes in judges.items():
            accuracy[half].append(round(100 * float((probs[nodes].argmax(1) == truth[nodes]).double().mean()), 3))
        if step == BATCHES:
            break
        available = pool & (label < 0)
        seed = 10_000 * draw + 100 * repetition + step
        inputs = StrategyInput(
            graph, probs, label, available, points, disagreement, seed=seed, count=min(classes, int(available.sum()))
        )
        began = time.perf_counter()
        taken = [item.node for item in batch(inputs, STRATEGIES[strategy])[0]]
        seconds += time.perf_counter() - began
        available[taken] = False
        remaining = available.nonzero()[:, 0].numpy()
        taken += rng.permutation(remaining)[: inputs.count - len(taken)].tolist()  # where duplicates left too few
        label[taken] = truth[taken]
    cell = {"graph": name, "draw": draw, "strategy": strategy, "repetition": repetition}
    return {**cell, "labels": counts, "seconds": round(seconds / BATCHES, 3), **accuracy}


def cells(args: Any) -> list[tuple[str, int, str, int]]:
    """The cells without a row, all of one graph together."""
    done = set()
    if (args.rows / "labelling-validation.jsonl").exists():
        done = {_key(row) for row in read(args.rows, "validation")}
    wanted = [
        (graph, draw, strategy, repetition)
        for graph in args.graphs
        for draw in range(args.draws)
        for strategy in args.strategies
        for repetition in range(REPEATED.get(strategy, 1))
    ]
    return [cell for cell in wanted if cell not in done]


def read(folder: Path, half: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"labelling-{half}.jsonl").read_text().splitlines()]


def _key(row: dict[str, Any]) -> tuple[str, int, str, int]:
    return row["graph"], row["draw"], row["strategy"], row["repetition"]


def write(folder: Path, row: dict[str, Any]) -> None:
    """Validation last: a cell that has a validation row has a test row too."""
    for half, other in (("test", "validation"), ("validation", "test")):
        out = {name: value for name, value in row.items() if name != other}
        out["accuracy"] = out.pop(half)
        with (folder / f"labelling-{half}.jsonl").open("a") as file:
            file.write(json.dumps(out) + "\n")


def area(accuracy: list[float]) -> float:
    """The mean height of the curve over the batches, by trapezes."""
    return float(np.trapezoid(accuracy)) / (len(accuracy) - 1)


def curves(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[int, list[float]]]:
    """By graph and strategy the curve of every draw, the mean over repetitions."""
    accuracies: dict[tuple[str, str], dict[int, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        accuracies[row["graph"], row["strategy"]][row["draw"]].append(row["accuracy"])
    return {
        key: {draw: np.mean(repetitions, axis=0).tolist() for draw, repetitions in sorted(by_draw.items())}
        for key, by_draw in accuracies.items()
    }


def saved(curve: list[float], random: list[float], labels: list[int]) -> float:
    """The share of the labels asked for that a curve does without to reach the last accuracy of random's."""
    goal, added = random[-1], labels[-1] - labels[0]
    for step, height in enumerate(curve):
        if height >= goal:
            if step == 0:
                return 1.0
            below = curve[step - 1]
            reached = labels[step - 1] + (goal - below) / (height - below) * (labels[step] - labels[step - 1])
            return float((labels[-1] - reached) / added)
    return 0.0


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Every strategy beside random: area under the curve by graph, paired t-tests over draws with Holm's correction."""
    curve_of = curves(rows)
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    labels = {row["graph"]: row["labels"] for row in rows}
    lines = {}
    for strategy in dict.fromkeys(row["strategy"] for row in rows):
        if strategy == "random":
            continue
        tests: list[Comparison] = []
        shares = []
        for graph in graphs:
            ours, other = curve_of.get((graph, strategy), {}), curve_of.get((graph, "random"), {})
            draws = sorted(ours.keys() & other.keys())
            if not draws:
                continue
            areas = [[area(curve[draw]) for draw in draws] for curve in (ours, other)]
            tests.append(paired(graph, strategy, "random", *areas))
            means = [np.mean([curve[draw] for draw in draws], axis=0).tolist() for curve in (ours, other)]
            shares.append(saved(means[0], means[1], labels[graph]))
        corrected = holm([test.p for test in tests])
        lines[strategy] = {
            "gain": round(fmean(test.difference for test in tests), 3),
            "better": sum(p < LEVEL and test.difference > 0 for p, test in zip(corrected, tests, strict=True)),
            "worse": sum(p < LEVEL and test.difference < 0 for p, test in zip(corrected, tests, strict=True)),
            "lowest": round(min(test.difference for test in tests), 3),
            "graphs": len(tests),
            "saved": round(fmean(shares), 3),
            "seconds": round(fmean(row["seconds"] for row in rows if row["strategy"] == strategy), 3),
            "by_graph": {
                test.place: {"gain": round(test.difference, 2), "p": round(p, 4), "saved": round(share, 3)}
                for test, p, share in zip(tests, corrected, shares, strict=True)
            },
        }
    return dict(sorted(lines.items(), key=lambda item: -item[1]["gain"]))


def written(rows: list[dict[str, Any]], draws: int) -> str:
    """The page of all strategies: a table of so many draws, and the default over all draws that it has."""
    lines = ["| strategy | points over random | graphs above, below | labels saved |", "|---|---|---|---|"]
    strategies = summary([row for row in rows if row["draw"] < draws])
    for name, line in strategies.items():
        lines.append(f"| `{name}` | {line['gain']:+.1f} | {line['better']}, {line['worse']} | {line['saved']:.0%} |")
    line = summary([row for row in rows if row["strategy"] in (DEFAULT, "random")])[DEFAULT]
    most = 1 + max(row["draw"] for row in rows if row["strategy"] == DEFAULT)
    low, least = min(line["by_graph"].items(), key=lambda item: item[1]["gain"])
    more = (
        f"With {most} draws the default, `{DEFAULT}`, is above random on {line['better']} of {line['graphs']} graphs "
        f"and below on {line['worse']}, by {line['gain']:.1f} points in the mean, and saves {line['saved']:.0%} of the "
        f"labels. Its lowest graph is {low}: {least['gain']:+.1f} points (p = {least['p']:.2f})."
    )
    return page(
        "Strategies for the next label",
        "python benchmarks/labelling.py --rows benchmarks/rows --summary test --page docs/results/labelling.md",
        ABOUT.format(draws=draws).strip(),
        "\n".join(lines),
        more,
        "![Learning curves of five strategies on ten graphs](../figures/labelling.svg)",
    )


def figure(rows: list[dict[str, Any]], path: Path, shown: list[str]) -> None:
    """The curves of some strategies, a panel for every graph."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    curve_of = curves(rows)
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    colours = {"random": "#8a8a8a"}
    palette = iter(("#0b6e4f", "#c8553d", "#3d5a80", "#b08900", "#7b2d8b"))
    plt.rcParams.update(
        {
            "font.size": 8,
            "svg.fonttype": "path",
            "svg.hashsalt": "bangs",
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    board, axes = plt.subplots(2, (len(graphs) + 1) // 2, figsize=(11, 4.6), constrained_layout=True)
    for axis, graph in zip(axes.flat, graphs, strict=False):
        labels = next(row["labels"] for row in rows if row["graph"] == graph)
        drawn = {name: curve_of[graph, name] for name in shown if (graph, name) in curve_of}
        # all curves begin with the same labels
        draws = set.intersection(*(set(by_draw) for by_draw in drawn.values()))
        for strategy, by_draw in drawn.items():
            heights = np.array([by_draw[draw] for draw in sorted(draws)])
            colour = colours.get(strategy) or colours.setdefault(strategy, next(palette))
            middle, error = heights.mean(0), heights.std(0, ddof=1) / len(heights) ** 0.5
            axis.plot(labels, middle, color=colour, label=strategy, linewidth=2 if strategy == shown[0] else 1.2)
            axis.fill_between(labels, middle - error, middle + error, color=colour, alpha=0.15, linewidth=0)
        axis.set_title(graph, fontsize=8)
    axes[-1, 0].set_xlabel("labels")
    axes[0, 0].set_ylabel("accuracy, %")
    axes[0, -1].legend(frameon=False, fontsize=7)
    board.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=list(DEVELOPMENT))
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), choices=list(STRATEGIES))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rows", type=Path, required=True, help="a folder of rows, which is gone on with")
    parser.add_argument("--summary", choices=HALVES, help="run nothing, and say what the rows say")
    parser.add_argument("--figure", type=Path, help="with --summary: draw the curves")
    parser.add_argument("--page", type=Path, help="with --summary: write the page of the documentation")
    parser.add_argument("--shown", nargs="+", default=[DEFAULT, "random", "entropy", "k-centre", "information"])
    parser.add_argument("--json", action="store_true", help="one JSON object to stdout")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    args.rows.mkdir(parents=True, exist_ok=True)
    if args.summary:
        rows = [row for row in read(args.rows, args.summary) if row["draw"] < args.draws]
        result = summary(rows)
        if args.figure:
            figure(rows, args.figure, args.shown)
        if args.page:
            args.page.write_text(written(read(args.rows, args.summary), args.draws))
            return
        if args.json:
            print(json.dumps(result))
            return
        for name, line in result.items():
            plain = {key: value for key, value in line.items() if key != "by_graph"}
            print(f"{name:<20}", plain)
            print(
                "    ",
                "  ".join(f"{graph} {test['gain']:+.2f}/{test['p']:.3f}" for graph, test in line["by_graph"].items()),
            )
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    left = cells(args)
    began = time.perf_counter()
    if args.jobs == 1:
        for number, cell in enumerate(left, 1):
            write(args.rows, curve(*cell))
            print(f"{number}/{len(left)} {time.perf_counter() - began:.0f} s {cell}", flush=True)
        return
    import multiprocessing

    # spawned, since torch's threads do not survive a fork
    with ProcessPoolExecutor(args.jobs, mp_context=multiprocessing.get_context("spawn")) as workers:
        running = [workers.submit(curve, *cell) for cell in left]
        for number, one in enumerate(as_completed(running), 1):
            write(args.rows, one.result())
            print(f"{number}/{len(left)} {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
