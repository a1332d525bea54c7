"""Does the forecast forecast? The utility that the game gives a coalition against that of a student taught it.

    python benchmarks/forecast.py [--datasets synthetic cora] [--seeds 5] [--coalitions 200] [--layers 2] [--json]

For every seed a teacher is trained and coalitions of 1 … k of its most confident free nodes are drawn, of all sizes
alike. A student is trained from the same initial weights on the given labels and the teacher's labels of the coalition.
Forecasts of the student's logits are P X̂(S), the game's own, with personalised PageRank or two hops as P, plain or
divided by the mass that reaches a node. One row a forecast, means over seeds with 95 % intervals:

`utility` is the rank correlation, over coalitions, of the forecast information with the student's; `within` the same
among coalitions of nearly equal size (five classes of size), since larger ones teach more; `accuracy` the rank
correlation of the forecast information with the student's accuracy on free nodes; `agreement` the share of open nodes
where forecast and student predict one class. `teacher` forecasts that nothing changes. `size` forecasts by |S| alone.
"""

import math
import statistics
from collections.abc import Callable

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
from measuring import graph, options, show

CANDIDATES, LARGEST, SIZES = 500, 100, 5
Operate = Callable[[Tensor], Tensor]


def main() -> None:
    parser = options(__doc__, repeats=None)
    parser.add_argument("--datasets", nargs="+", default=["synthetic", "cora"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--coalitions", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--layers", type=int, choices=[1, 2], default=2, help="2: the tuned GCN; 1: one linear hop")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    learner = trainer("gcn") if asked.layers == 2 else trainer("sgc", model=SGC(hops=1))
    settings = Trainer(**{**vars(learner), "epochs": asked.epochs, "patience": asked.epochs})
    rows = []
    for wanted in asked.datasets:
        name, data = graph(wanted)
        found = [study(data, settings, seed, asked.coalitions) for seed in range(asked.seeds)]
        for forecast in found[0]:
            figures = {measure: interval([one[forecast][measure] for one in found]) for measure in found[0][forecast]}
            rows.append({"dataset": name, "forecast": forecast, **figures})
    what = f"{asked.seeds} seeds, {asked.coalitions} coalitions each of at most {LARGEST} of {CANDIDATES} candidates"
    show(rows, asked.json, protocol=f"{what}; {type(settings.model).__name__}, {asked.epochs} epochs")


def study(data: Data, settings: Trainer, seed: int, count: int) -> dict[str, dict[str, float]]:
    """Every measure of every forecast for one teacher."""
    task = Task.of(data, splits.default(data, (seed,)), data.get("num_classes"))
    teacher = settings.fit(task, task.given, Streams((seed,))).predict(task.graph)
    known, free = task.given.known[0], ~(task.given.known | task.held)[0]
    candidates = teacher.confidence[0].masked_fill(~free, -1).topk(min(CANDIDATES, int(free.sum()))).indices
    members = coalitions(candidates, len(known), count, seed)
    students = taught(data, settings, seed, teacher.label[0], members)
    worth, labels = information(students.log_softmax(-1), ~known), students.argmax(-1)
    right = ((labels == data.y) & free).sum(1) / free.sum()
    sizes = members.sum(1)
    out: dict[str, dict[str, float]] = {}
    for name, operate in operators(data, task).items():
        for normalise in ("plain", "mass"):
            logits = forecast(operate, teacher.logits[0], members | known, normalise == "mass")
            own = information(logits.log_softmax(-1), ~known)
            agree = float((logits.argmax(-1) == labels)[:, ~known].float().mean())
            out[f"{name}, {normalise}"] = judged(own, worth, right, sizes) | {"agreement": agree}
    same = float((teacher.label[0] == labels)[:, ~known].float().mean())
    nothing = dict.fromkeys(("utility", "within", "accuracy"), math.nan)
    return {
        **out,
        "teacher": nothing | {"agreement": same},
        "size": judged(sizes, worth, right, sizes) | {"agreement": math.nan},
    }


def coalitions(candidates: Tensor, nodes: int, count: int, seed: int) -> Tensor:
    """Random coalitions of 1 … LARGEST candidates: bool [count, N]."""
    draw = torch.Generator().manual_seed(seed)
    out = torch.zeros(count, nodes, dtype=torch.bool)
    for row in out:
        size = int(torch.randint(1, min(LARGEST, len(candidates)) + 1, (1,), generator=draw))
        row[candidates[torch.randperm(len(candidates), generator=draw)[:size]]] = True
    return out


def taught(data: Data, settings: Trainer, seed: int, label: Tensor, members: Tensor) -> Tensor:
    """The logits of a student for every coalition, all from the same initial weights: [count, N, C]."""
    count = len(members)
    task = Task.of(data, splits.default(data, [seed] * count), data.get("num_classes"))
    labels = task.given.adopt(members, label.expand(count, -1), 1.0, 1)
    student = settings.fit(task, labels, Streams((seed,) * count))
    return student.predict(task.graph).logits


def operators(data: Data, task: Task) -> dict[str, Operate]:
    """What a forecast may propagate with."""
    index, weight = gcn_norm(data.edge_index, num_nodes=task.nodes)
    hop = torch.sparse_coo_tensor(index.flip(0), weight, (task.nodes, task.nodes)).coalesce()
    return {"PageRank": task.cached(PPR()), "two hops": lambda x: hop @ (hop @ x), "one hop": lambda x: hop @ x}


def forecast(operate: Operate, logits: Tensor, taught: Tensor, mass: bool) -> Tensor:
    """P X̂(S) for sets of labelled nodes bool [count, N]: [count, N, C]."""
    signal = torch.cat([logits, torch.ones_like(logits[:, :1])], dim=1)
    out = []
    for part in taught.split(20):
        x = (part.T[:, :, None] * signal[:, None]).flatten(1)
        spread = operate(x).view(len(logits), len(part), -1).transpose(0, 1)
        out.append(spread[..., :-1] / (spread[..., -1:].clamp_min(1e-9) if mass else 1.0))
    return torch.cat(out)


def information(log_p: Tensor, open: Tensor) -> Tensor:
    """H(mean p) − mean H(p) over the open nodes, of log-probabilities [count, N, C]: [count]."""
    own = log_p[:, open].double()
    mean = own.exp().mean(1)
    entropy = -(own.exp() * own).sum(-1).mean(1)
    return -(mean * mean.clamp_min(1e-300).log()).sum(-1) - entropy


def judged(own: Tensor, worth: Tensor, right: Tensor, sizes: Tensor) -> dict[str, float]:
    """Rank correlations of a forecast with what the students became."""
    classes = np.array_split(np.argsort(np.asarray(sizes), kind="stable"), SIZES)
    return {
        "utility": correlation(own, worth),
        "within": statistics.fmean(correlation(own[index], worth[index]) for index in map(torch.as_tensor, classes)),
        "accuracy": correlation(own, right),
    }


def correlation(one: Tensor, other: Tensor) -> float:
    return float(spearmanr(one, other).statistic)


def interval(values: list[float]) -> str:
    """Mean and half of the 95 % interval over seeds."""
    if any(map(math.isnan, values)):
        return "–"
    half = (
        float(t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
        if len(values) > 1
        else 0.0
    )
    return f"{statistics.fmean(values):.2f} ± {half:.2f}"


if __name__ == "__main__":
    main()
