"""Does the forecast forecast? The utility that the game gives a coalition against that of students taught it.

    python benchmarks/forecast.py [--datasets synthetic cora] [--layers 2 1] [--seeds 5] [--coalitions 200]
                                  [--students 3] [--device cuda] [--rows FILE] [--json]
    python benchmarks/forecast.py --page docs/results/forecast.md     # from the rows that were kept; runs nothing

For every seed a teacher is trained and coalitions of 1 … k of its most confident free nodes are drawn, of all sizes
alike. Several students learn the given labels and the teacher's labels of the coalition, each from initial weights and
dropout of its own, the same for all coalitions. What a coalition is worth is the mean over its students. `--layers 2`
is the tuned GCN, `--layers 1` one linear hop, as in the case study of the paper's appendix. Forecasts of the logits:

`PageRank`, `two hops`, `one hop` are P X̂(S), the game's own with PageRank as P, plain or divided by the mass that
reaches a node; `PageRank, fitted` has the α and the scale that best forecast the teacher from the labels it was taught;
`teacher + PageRank` adds Ĥ to the teacher's logits; `ridge` is the closed-form ridge regression of labels on features
after the network's own hops, a student without its training noise. `teacher` says that nothing
changes, `size` forecasts by |S| alone. `another student` forecasts by one more student taught the same: what it lacks
to 1 is the noise of training. From it follows `best possible`, the correlation of a forecast that knew what a coalition
is worth in the mean over all students, with the mean over the few that were trained (Spearman's correction).

`utility` is the rank correlation, over coalitions, of the forecast information with that of the students; `within` the
same among coalitions of nearly equal size (five classes of size), since larger ones teach more; `accuracy` the rank
correlation of the forecast information with the students' accuracy on free nodes; `agreement` the share of open nodes
where forecast and student predict one class. Means over seeds with 95 % intervals.
"""

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr, t
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from bangs.core.rng import Streams
from bangs.core.types import Task
from bangs.graphs import splits
from bangs.graphs.pagerank import PPR
from bangs.nn.models import SGC
from bangs.training.presets import trainer
from bangs.training.trainer import Trainer
from measuring import graph, options, page, show

ROWS = Path(__file__).with_name("rows") / "forecast.jsonl"
CANDIDATES, LARGEST, SIZES, RIDGE = 500, 100, 5, 1.0
ABOUT = """
The page [Forecast](../forecast.md) has the question and the answer. Means over five seeds ± 95 % interval, 200
coalitions a seed, three students a coalition, processor, commit 5b6a240. An H200 at commit bc61b3f gave the same
numbers with one layer, and with two layers the same up to the noise of training.

Columns:

- **utility**: rank correlation over coalitions of the forecast information with the information of the students.
- **within a size**: the same among coalitions of nearly equal size.
- **accuracy**: rank correlation of the forecast information with the students' accuracy on free nodes.
- **same class**: share of open nodes for which forecast and student predict the same class.

Forecasts:

- **PageRank, plain** is the Û of the game. **mass** divides by the PageRank mass that reaches a node.
- **PageRank, fitted** uses the α and the scale with which the given labels best forecast the teacher. The teacher
  learned from these labels alone.
- **two hops** and **one hop** replace PageRank by the steps of a GCN.
- **teacher + PageRank** adds Ĥ to the logits of the teacher.
- **ridge** is ridge regression of the labels on the features after the hops of the network.
- **another student** is a fourth student of the same coalition with other random numbers. Its distance to 1 is the
  noise of training.
- **best possible** follows from it: the correlation of a forecast that knew the mean worth over all students.
- **teacher** says that no prediction changes. **size** forecasts by the number of members alone.
"""
_NAMES = {"synthetic": "embedded", "cora": "Cora"}
MEASURES = ("utility", "within", "accuracy", "agreement")
RESTARTS, SCALES = (0.02, 0.05, 0.1, 0.15, 0.25, 0.4, 0.6, 0.8), tuple(2.0**power for power in range(-2, 9))
Operate = Callable[[Tensor], Tensor]


def main() -> None:
    parser = options(__doc__, repeats=None)
    parser.add_argument("--datasets", nargs="+", default=["synthetic", "cora"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--coalitions", type=int, default=200)
    parser.add_argument("--students", type=int, default=3, help="taught each coalition; one more is the forecast")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--layers", nargs="+", type=int, choices=[1, 2], default=[2])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=Path, help="append a row for every seed and forecast")
    parser.add_argument("--page", type=Path, help="run nothing; write this page from benchmarks/rows/forecast.jsonl")
    args = parser.parse_args()
    if args.page is not None:
        args.page.write_text(written([json.loads(line) for line in ROWS.read_text().splitlines()]))
        return
    torch.set_num_threads(args.threads)
    rows = []
    for layers in args.layers:
        settings = learner(layers, args.epochs)
        for wanted in args.datasets:
            name, data = graph(wanted)
            for seed in range(args.seeds):
                results = study(data, settings, seed, args.coalitions, args.students, layers, args.device)
                setting = {"layers": layers, "dataset": name, "seed": seed, "device": args.device}
                setting |= {"students": args.students, "coalitions": args.coalitions, "epochs": args.epochs}
                rows += [{**setting, "forecast": forecast, **figures} for forecast, figures in results.items()]
                if args.rows is not None:
                    with args.rows.open("a") as stream:
                        stream.writelines(json.dumps(finite(row)) + "\n" for row in rows[-len(results) :])
    what = f"{args.seeds} seeds, {args.coalitions} coalitions each of at most {LARGEST} of {CANDIDATES} candidates"
    show(summary(rows), args.json, protocol=f"{what}, {args.students} students each; {args.epochs} epochs")


def learner(layers: int, epochs: int) -> Trainer:
    """The tuned GCN, or one linear hop, for all epochs."""
    settings = vars(trainer("gcn")) if layers == 2 else {**vars(trainer("sgc")), "model": SGC(hops=1)}
    return Trainer(**{**settings, "epochs": epochs, "patience": epochs})


def study(
    data: Data, settings: Trainer, seed: int, count: int, students: int, layers: int, device: str
) -> dict[str, dict[str, float]]:
    """Every measure of every forecast for one teacher."""
    task = Task.of(data, splits.default(data, (seed,)), data.get("num_classes")).to(device)
    truth = data.y.to(device)
    teacher = settings.fit(task, task.given, Streams((seed,))).predict(task.graph)
    known, free = task.given.known[0], ~(task.given.known | task.held)[0]
    candidates = teacher.confidence[0].masked_fill(~free, -1).topk(min(CANDIDATES, int(free.sum()))).indices
    members = coalitions(candidates.cpu(), len(known), count, seed)
    students_logits = [
        taught(data, settings, seed, number, teacher.label[0].cpu(), members, device) for number in range(students + 1)
    ]
    members, sizes = members.to(device), members.sum(1)
    utilities = [information(logits.log_softmax(-1), ~known) for logits in students_logits]
    labels = [logits.argmax(-1) for logits in students_logits[:-1]]
    accuracy = torch.stack([((label == truth) & free).sum(1) / free.sum() for label in labels]).mean(0)
    utility_mean = torch.stack(utilities[:-1]).mean(0)

    def all_of(utility: Tensor, label: Tensor) -> dict[str, float]:
        same = statistics.fmean(float((label == other)[:, ~known].float().mean()) for other in labels)
        return judged(utility, utility_mean, accuracy, sizes) | {"agreement": same}

    out = {}
    for name, logits in forecasts(data, task, teacher.logits[0], members, teacher.label[0], layers):
        out[name] = all_of(information(logits.log_softmax(-1), ~known), logits.argmax(-1))
    out["another student"] = all_of(utilities[-1], students_logits[-1].argmax(-1))
    no_ranks = dict.fromkeys(("utility", "within", "accuracy"), math.nan)
    out["teacher"] = no_ranks | {"agreement": all_of(utility_mean, teacher.label[0].expand(count, -1))["agreement"]}
    out["size"] = judged(sizes, utility_mean, accuracy, sizes) | {"agreement": math.nan}
    return out


def coalitions(candidates: Tensor, nodes: int, count: int, seed: int) -> Tensor:
    """Random coalitions of 1 … LARGEST candidates: bool [count, N]."""
    draw = torch.Generator().manual_seed(seed)
    out = torch.zeros(count, nodes, dtype=torch.bool)
    for row in out:
        size = int(torch.randint(1, min(LARGEST, len(candidates)) + 1, (1,), generator=draw))
        row[candidates[torch.randperm(len(candidates), generator=draw)[:size]]] = True
    return out


def taught(
    data: Data, settings: Trainer, seed: int, number: int, label: Tensor, members: Tensor, device: str
) -> Tensor:
    """The logits of one student for every coalition, all with the same random numbers: [count, N, C]."""
    count = len(members)
    task = Task.of(data, splits.default(data, [seed] * count), data.get("num_classes")).to(device)
    labels = task.given.adopt(members.to(device), label.to(device).expand(count, -1), 1.0, 1)
    rng = Streams((seed,) * count).at("student", number)
    return settings.fit(task, labels, rng).predict(task.graph).logits


def forecasts(
    data: Data, task: Task, logits: Tensor, members: Tensor, label: Tensor, layers: int
) -> Iterable[tuple[str, Tensor]]:
    """Names and logits [count, N, C] of what students of the coalitions bool [count, N] would say."""
    known = task.given.known[0]
    taught = members | known
    index, weight = gcn_norm(data.edge_index, num_nodes=task.nodes)
    hop = torch.sparse_coo_tensor(index.flip(0), weight, (task.nodes, task.nodes)).coalesce().to(task.device)
    operators: dict[str, Operate] = {
        "PageRank": task.cached(PPR()),
        "two hops": lambda x: hop @ (hop @ x),
        "one hop": lambda x: hop @ x,
    }
    for name, operate in operators.items():
        spread, mass = propagated(operate, logits, taught)
        yield f"{name}, plain", spread
        yield f"{name}, mass", spread / mass.clamp_min(1e-9)
        if name == "PageRank":
            yield "teacher + PageRank", logits + spread
            restart, scale = fitted(task, logits, known)
            yield "PageRank, fitted", scale * propagated(pagerank(task, restart), logits, taught)[0]
    x = task.graph.x.to_dense() if task.graph.x.layout != torch.strided else task.graph.x
    for _ in range(layers):
        x = hop @ x
    yield "ridge", ridge(x.double(), taught, label, logits)


def pagerank(task: Task, restart: float) -> Operate:
    """PageRank with so many steps that 1 % of the walks at most are cut short."""
    return task.cached(PPR(alpha=restart, steps=math.ceil(math.log(0.01) / math.log(1 - restart))))


def fitted(task: Task, logits: Tensor, known: Tensor) -> tuple[float, float]:
    """The α and the scale with which the given labels alone best forecast the teacher, who was taught just these.

    Best is the least mean divergence KL(teacher ‖ forecast) over open nodes; no true label of theirs is read.
    """
    teacher_log_probs = logits[~known].log_softmax(-1)
    divergences = {}
    for restart in RESTARTS:
        spread = propagated(pagerank(task, restart), logits, known[None])[0][0, ~known]
        for scale in SCALES:
            log_probs = (scale * spread).log_softmax(-1)
            divergences[restart, scale] = float(
                (teacher_log_probs.exp() * (teacher_log_probs - log_probs)).sum(-1).mean()
            )
    return min(divergences, key=divergences.__getitem__)


def propagated(operate: Operate, logits: Tensor, taught: Tensor) -> tuple[Tensor, Tensor]:
    """P X̂(S) [count, N, C] and the mass that reaches a node [count, N, 1], for sets of nodes bool [count, N]."""
    with_ones = torch.cat([logits, torch.ones_like(logits[:, :1])], dim=1)
    out = []
    for part in taught.split(20):
        x = (part.T[:, :, None] * with_ones[:, None]).flatten(1)
        out.append(operate(x).view(len(logits), len(part), -1).transpose(0, 1))
    spread = torch.cat(out)
    return spread[..., :-1], spread[..., -1:]


def ridge(x: Tensor, taught: Tensor, label: Tensor, logits: Tensor) -> Tensor:
    """Ridge regression of the centred labels of every set on the features, as sharp as the teacher: [count, N, C]."""
    x = x / x.norm(dim=1).mean()
    kernel, classes = x @ x.T, logits.shape[1]
    target = torch.nn.functional.one_hot(label, classes).double() - 1 / classes
    out = []
    for members in taught:
        nodes = members.nonzero()[:, 0]
        gram = kernel[nodes][:, nodes] + RIDGE * torch.eye(len(nodes), dtype=x.dtype, device=x.device)
        out.append((kernel[:, nodes] @ torch.linalg.solve(gram, target[nodes])).float())
    logits_out = torch.stack(out)
    # one factor for all sets, so that their order is untouched
    return logits_out * (logits.std() / logits_out[0].std())


def information(log_p: Tensor, open: Tensor) -> Tensor:
    """H(mean p) − mean H(p) over the open nodes, of log-probabilities [count, N, C]: [count]."""
    log_probs = log_p[:, open].double()
    mean = log_probs.exp().mean(1)
    entropy = -(log_probs.exp() * log_probs).sum(-1).mean(1)
    return -(mean * mean.clamp_min(1e-300).log()).sum(-1) - entropy


def judged(forecast: Tensor, utility: Tensor, accuracy: Tensor, sizes: Tensor) -> dict[str, float]:
    """Rank correlations of a forecast with what the students became."""
    forecast, utility, accuracy = forecast.cpu(), utility.cpu(), accuracy.cpu()
    classes = np.array_split(np.argsort(np.asarray(sizes), kind="stable"), SIZES)
    return {
        "utility": correlation(forecast, utility),
        "within": statistics.fmean(
            correlation(forecast[index], utility[index]) for index in map(torch.as_tensor, classes)
        ),
        "accuracy": correlation(forecast, accuracy),
    }


def correlation(one: Tensor, other: Tensor) -> float:
    return float(spearmanr(one, other).statistic)


def summary(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for every forecast: means over seeds and half of the 95 % intervals."""
    groups: dict[tuple[int, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["layers"], row["dataset"], row["forecast"]), []).append(row)
        if row["forecast"] == "another student":
            groups.setdefault((row["layers"], row["dataset"], "best possible"), []).append(best_possible(row))
    return [
        {
            "layers": layers,
            "dataset": dataset,
            "forecast": forecast,
            **{measure: interval([row[measure] for row in group]) for measure in MEASURES},
        }
        for (layers, dataset, forecast), group in groups.items()
    ]


def best_possible(row: Mapping[str, Any]) -> dict[str, float]:
    """The correlations of a forecast without noise, from those of another student."""
    ceilings = {measure: ceiling(row[measure], row["students"]) for measure in ("utility", "within")}
    return ceilings | {"accuracy": math.nan, "agreement": math.nan}


def ceiling(measured: float, students: int) -> float:
    """The correlation √ρ of a mean over students with its expectation, where one more student has `measured` with it.

    With r the correlation of two students, the mean over m of them has the reliability ρ = m r / (1 + (m − 1) r), and
    one more student has √(r ρ) with it. That is m r² − (m − 1) c² r − c² = 0 for r.
    """
    c = max(measured, 0.0)
    pair = ((students - 1) * c**2 + math.sqrt(((students - 1) * c**2) ** 2 + 4 * students * c**2)) / (2 * students)
    return c / math.sqrt(pair) if c else 0.0


def written(rows: Iterable[Mapping[str, Any]]) -> str:
    """The page of all forecasts."""
    command = "python benchmarks/forecast.py --page docs/results/forecast.md"
    return page("Forecasts of what a student will know", command, ABOUT.strip(), table(rows).strip())


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """The summary in Markdown."""
    head = ["layers", "graph", "forecast", "utility", "within a size", "accuracy", "same class"]
    body = [[_NAMES.get(cell, cell) for cell in map(str, row.values())] for row in summary(rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, ["---"] * len(head), *body])


def interval(values: list[float | None]) -> str:
    """Mean and half of the 95 % interval over seeds."""
    present = [value for value in values if value is not None and not math.isnan(value)]
    if len(present) < len(values):
        return "–"
    if len(present) == 1:
        return f"{present[0]:.2f}"
    half = float(t.ppf(0.975, len(present) - 1)) * statistics.stdev(present) / math.sqrt(len(present))
    return f"{statistics.fmean(present):.2f} ± {half:.2f}"


def finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with None in place of what is no number, and four digits."""
    return {
        key: None if isinstance(value, float) and math.isnan(value) else round(value, 4) if key in MEASURES else value
        for key, value in row.items()
    }


if __name__ == "__main__":
    main()
