"""How time and peak memory grow with the graph, the classes and what is asked: exponents fitted on log-log axes.

    python benchmarks/growth.py [--quick] [--plot docs/growth.svg] [--json]

Two acts on synthetic citation networks: one training epoch of the GCN over the whole graph, and one valuation of a
round's candidates by the default estimator, propagation included. One size grows at a time. Every case runs in a
process of its own. `peak_bytes` is the largest memory above the loaded graph; `seconds` are medians by the clock and
`cpu_seconds` by the processor, from which the exponents come, since others' work does not lengthen it. The plain twins
(`plain_training.py`, `plain_selection.py`) take turns with ours up to 30,000 nodes, one run after the other; beyond,
`ratio` is null.
"""

import json
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Split, Task
from bangs.graphs.datasets import synthetic
from bangs.graphs.pagerank import PPR
from bangs.training.presets import trainer
from bangs.valuation.banzhaf import Marginals
from bangs.valuation.information import Information
from measuring import in_turns, options, peak_of, power, show, table
from plain_selection import PlainSelection
from plain_training import PlainGCN, PlainTraining
from rounds import Occasion, pretended

PLAIN_UP_TO = 30_000  # nodes
PLAIN_COALITIONS, COALITIONS = 5, 500  # timed, and as many as the paper has
FEATURES = 256
TURN = 0.05  # seconds; shorter acts are repeated for so long


@dataclass(frozen=True)
class Case:
    """One act at one size; `grows` names the size that its axis varies."""

    act: Literal["epoch", "selection"]
    grows: str
    nodes: int = 20_000
    degree: float = 10.0
    classes: int = 7
    runs: int = 1
    K: int = 200
    k: int = 100
    samples: int = 16


AXES: dict[str, dict[str, list[Any]]] = {
    "epoch": {
        "nodes": [1_000, 10_000, 100_000, 1_000_000],
        "edges": [2.0, 8.0, 32.0],
        "classes": [2, 8, 32],
        "runs": [1, 3, 9],
    },
    "selection": {
        "nodes": [1_000, 10_000, 100_000, 1_000_000],
        "edges": [2.0, 8.0, 32.0],
        "classes": [2, 8, 32],
        "runs": [1, 3, 9],
        "K": [100, 200, 400, 800],
        "k": [25, 100, 400],
        "samples": [8, 32, 128],
    },
}


def cases(largest: int) -> Iterator[Case]:
    """Every size of every axis, graphs of at most `largest` nodes."""
    for act, axes in AXES.items():
        for grows, sizes in axes.items():
            base = Case(act, grows)  # type: ignore[arg-type]
            base = replace(base, K=500) if grows == "k" else base
            name = "degree" if grows == "edges" else grows
            for size in sizes:
                case = replace(base, **{name: size})
                if case.nodes <= largest:
                    yield case


def measure(case: Case, repeats: int) -> dict[str, Any]:
    """The row of a case, in this process."""
    data = synthetic.citation(case.nodes, case.classes, FEATURES, mean_degree=case.degree)
    act = Epoch(case, data) if case.act == "epoch" else Selection(case, data)
    peak = peak_of(act.prepare_and_do)
    acts: dict[str, Callable[[], Any]] = {"ours": act.ours}
    scales = {"ours": 1.0}
    if case.nodes <= PLAIN_UP_TO:
        acts["plain"], scales["plain"] = act.plain(), act.plain_scale * case.runs
    times = in_turns(acts, repeats, scales, TURN)
    ours = times["ours"]
    row = asdict(case) | {"edges": data.edge_index.shape[1], **act.facts()}
    row |= {"seconds": ours.seconds, "ratio": None, "cpu_seconds": ours.cpu_seconds, "cpu_ratio": None}
    row |= ours.against(times["plain"]) if "plain" in times else {}
    return row | {"peak_bytes": peak}


class Epoch:
    """One step of Adam and one look at the validation nodes, over the whole graph; 5 % of the nodes have labels."""

    plain_scale = 1.0

    def __init__(self, case: Case, data: Data):
        self.case, self.data = case, data
        random = torch.rand(case.nodes, generator=torch.Generator().manual_seed(0))
        split = Split.repeated(random < 0.05, (random >= 0.05) & (random < 0.2), random >= 0.2, case.runs)
        self.task = Task.of(data, split, case.classes)
        self.rng = Streams(tuple(range(case.runs)))

    def prepare_and_do(self) -> None:
        self.learner = trainer("gcn", "tuned", epochs=1, subgraph="whole").prepare(self.task)
        self.ours()

    def ours(self) -> None:
        self.learner.fit(self.task.given, self.rng)

    def plain(self) -> Callable[[], None]:
        model = self.learner.trainer.model
        network = PlainGCN(FEATURES, self.case.classes, model)
        training = PlainTraining(self.data, network, self.learner.trainer.lr, self.learner.trainer.weight_decay)
        return partial(training.epoch, self.task.given.target[0], self.task.validation[0])

    def facts(self) -> dict[str, Any]:
        return {}


class Selection:
    """One valuation of the K most confident nodes, in as many runs; the plain one takes 1 in 100 coalitions."""

    plain_scale = COALITIONS / PLAIN_COALITIONS

    def __init__(self, case: Case, data: Data):
        self.case = case
        self.occasion: Occasion = pretended("synthetic", data)
        self.players = self.occasion.players(case.K)

    def prepare_and_do(self) -> None:
        self.operator = PPR()(self.occasion.graph)
        self.ours()

    def ours(self) -> None:
        runs, of = self.case.runs, self.occasion
        logits, known, players = (part.expand(runs, *part.shape) for part in (of.logits, of.known, self.players))
        game = Information.of(self.operator, logits, known, players)
        generators = [torch.Generator().manual_seed(run) for run in range(runs)]
        Marginals(self.case.samples)(game, self.case.k, generators)

    def plain(self) -> Callable[[], Any]:
        of = self.occasion
        select = PlainSelection(samples=PLAIN_COALITIONS)
        return lambda: select(of.graph, of.logits, of.known, self.players, self.case.k)

    def facts(self) -> dict[str, Any]:
        """How many nodes that count the players reach."""
        players = torch.zeros(self.case.nodes, 1)
        players[self.players] = 1
        reached = (self.operator(players)[:, 0] > 0) & ~self.occasion.known
        return {"reached": int(reached.sum())}


def exponents(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What power of each size time and memory grow with, by least squares of logarithms."""
    slopes = []
    for act, axes in AXES.items():
        for grows in axes:
            chosen = [row for row in rows if row["act"] == act and row["grows"] == grows]
            slopes.append({"act": act, "in": grows, **_powers([row[grows] for row in chosen], chosen)})
    chosen = [row for row in rows if row["act"] == "selection" and row["grows"] in ("nodes", "K")]
    product = [row["K"] * row["reached"] for row in chosen]
    slopes.append({"act": "selection", "in": "K x reached nodes", **_powers(product, chosen)})
    return slopes


def _powers(sizes: list[float], rows: list[dict[str, Any]]) -> dict[str, Any]:
    time, memory = (power(sizes, [row[name] for row in rows]) for name in ("cpu_seconds", "peak_bytes"))
    return {"from": min(sizes), "to": max(sizes), "time": time, "memory": memory}


def plot(rows: list[dict[str, Any]], file: Path) -> None:
    """Time and memory, each beside what it is at the smallest size; one line a size that grows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 6.6))
    for line, (act, sizes) in zip(axes, AXES.items(), strict=True):
        for axis, name, title in zip(line, ("cpu_seconds", "peak_bytes"), ("time", "peak memory"), strict=True):
            for grows in sizes:
                chosen = [row for row in rows if row["act"] == act and row["grows"] == grows]
                x = [row[grows] / chosen[0][grows] for row in chosen]
                axis.plot(x, [row[name] / chosen[0][name] for row in chosen], "o-", markersize=3, lw=1, label=grows)
            axis.plot([1, 1000], [1, 1000], color="grey", lw=0.6, ls=":", label="in proportion")
            axis.set(xscale="log", yscale="log", title=f"{act}: {title}", xlabel="size / the smallest")
            axis.set_ylabel(f"{title} / at the smallest")
        line[1].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--quick", action="store_true", help="graphs of at most 100,000 nodes")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    args = parser.parse_args()
    rows = []
    # a process of its own for every case; where it can be forked it need not import everything again
    start = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with start.Pool(1, torch.set_num_threads, (args.threads,), maxtasksperchild=1) as pool:
        for case in sorted(cases(100_000 if args.quick else 1_000_000), key=lambda case: case.nodes):
            rows.append(pool.apply(measure, (case, args.repeats)))
            print(json.dumps(rows[-1]), file=sys.stderr)
    if args.plot is not None:
        plot(rows, args.plot)
    powers = exponents(rows)
    show(rows, args.json, unit=f"medians of {args.repeats}, {args.threads} thread(s)", exponents=powers)
    if not args.json:
        print(table(powers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
