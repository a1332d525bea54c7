"""A graph like ogbn-products on one GPU: seconds an epoch, whole and in batches, and seconds a selection.

    python benchmarks/products.py [--nodes 2400000] [--edges 120000000] [--json]
    python benchmarks/products.py --nodes 2000 --edges 20000 --bandwidth 2e10    # a small one on a processor

The graph is made on the device from a seed: communities with hubs, as `bangs convert synthetic:…` makes them, 8 % of
the nodes to learn from and 2 % for validation. Rows: one sparse product [N, N] × [N, h] by itself; an epoch of the
tuned GCN on the whole graph (a step and a look at the validation nodes); an epoch in batches with drawn
neighbourhoods; logits of all nodes, whole and layer by layer; one round's calibration and selection; and what is
propagated for a selection by itself, 500 columns and the logits of known nodes.

`gathered_bytes` counts, for every sparse product, each stored entry once (a column and a value) and the row of the
dense factor that it leads to, and every row that comes out; what caches give back is not subtracted, so a share above
1 is possible. `least_bytes` counts each operand once, as if caches held all of it. Shares are of --bandwidth, by
default the 4.8 TB/s of an H200. An epoch has six products: forward, back, and forward for the look, h and C wide.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Split, Task
from bangs.graphs.pagerank_push import Push
from bangs.selection.scores import Banzhaf
from bangs.selftraining.budget import Budget
from bangs.selftraining.loop import SelfTrainer
from bangs.selftraining.methods import method
from bangs.training.neighbour_sampling import Sampling
from bangs.training.presets import trainer
from bangs.training.trainer import Learner
from bangs.valuation.sparse_influence import PAIR_BYTES
from measuring import options, peak_bytes, show

MORE = 2  # epochs in batches that are timed


def main() -> None:
    parser = options(__doc__, repeats=None)
    parser.add_argument("--nodes", type=int, default=2_400_000)
    parser.add_argument("--edges", type=int, default=120_000_000, help="in both directions")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--classes", type=int, default=47)
    parser.add_argument("--epochs", type=int, default=20, help="epochs of a timing on the whole graph")
    parser.add_argument("--size", type=int, default=1024, help="labelled nodes a batch")
    parser.add_argument("--fanout", nargs="+", type=int, default=[10, 10])
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--bandwidth", type=float, default=4.8e12, help="bytes a second that the device can move")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    made, task = _timed(lambda: _task(args, device))
    bench = _Bench(task, args, [])
    bench.tell({"what": "graph made", "seconds": made, "peak_bytes": peak_bytes()})
    learner = bench.whole()
    bench.batches()
    bench.select(learner)
    bench.propagate()
    edges = int(task.graph.edge_index.shape[1])
    show(bench.rows, args.json, nodes=task.nodes, edges=edges, labelled=int(task.given.known.sum()))


@dataclass
class _Bench:
    task: Task
    args: Any
    rows: list[dict[str, Any]]

    def tell(self, row: dict[str, Any]) -> None:
        """One more row, shown at once on stderr."""
        self.rows.append(row)
        print(row, file=sys.stderr, flush=True)

    def whole(self) -> Learner:
        """Products, epochs and logits on the whole graph."""
        args, task = self.args, self.task
        settings = trainer("gcn", "tuned", epochs=args.epochs, patience=10**6)
        learner = settings.prepare(task)
        prepared, subgraph = _timed(lambda: learner.prepared.whole)
        self.tell({"what": "graph prepared", "seconds": prepared, "peak_bytes": peak_bytes()})
        hidden, entries = settings.model.hidden, len(subgraph.hops[0].values)
        dense = torch.randn(task.nodes, hidden, device=task.device)
        _ = subgraph.hops[0] @ dense
        one, _ = _timed(lambda: [subgraph.hops[0] @ dense for _ in range(10)])
        self._row("one product", one / 10, self._traffic(entries, [hidden]))
        rng = Streams((0,))
        learner.fit(task.given, rng)  # captures the epoch and compiles kernels
        seconds, teacher = _timed(lambda: learner.fit(task.given, rng))
        widths = 3 * [hidden, task.classes]
        self._row("epoch, whole graph", seconds / args.epochs, self._traffic(entries, widths))
        seconds, _ = _timed(lambda: teacher.predict(task.graph))
        self._row("logits, whole graph", seconds, self._traffic(entries, [hidden, task.classes]))
        return learner

    def batches(self) -> None:
        """Epochs with drawn neighbourhoods, and logits layer by layer."""
        args, task = self.args, self.task
        sampling = Sampling(args.size, tuple(args.fanout), memory=8 * 2**30)
        settings = trainer("gcn", "tuned", epochs=1, patience=10**6, batches=sampling)
        short, long = settings.prepare(task), replace(settings, epochs=1 + MORE).prepare(task)
        long.sampler = short.sampler
        rng = Streams((0,))
        short.fit(task.given, rng)
        once, _ = _timed(lambda: short.fit(task.given, rng))
        more, teacher = _timed(lambda: long.fit(task.given, rng))
        seconds = (more - once) / MORE  # what a fit does besides its epochs falls away
        steps = -(-int(task.given.known.sum()) // args.size)
        row = {"what": "epoch, batches", "seconds": seconds, "steps": steps, "seconds_a_step": seconds / steps}
        self.tell({**row, "validation": float(teacher.validation), "peak_bytes": peak_bytes()})
        teacher.predict(task.graph)  # those the fit ended with
        seconds, _ = _timed(lambda: teacher.predict(task.graph))
        self.tell({"what": "logits, layer by layer", "seconds": seconds, "peak_bytes": peak_bytes()})

    def select(self, learner: Learner) -> None:
        """A round of BANGS after the first model; the first round builds what later ones reuse."""
        budget = Budget(k=self.args.k, candidates=self.args.candidates, normalise="mass", teacher="latest")
        recipe = replace(method("bangs", budget), rounds=2)
        trained = SelfTrainer(learner.trainer, recipe)
        rng = Streams((0,))
        state = trained.begin(learner, rng)
        for name in ("first round", "second round"):
            state = trained.advance(state, rng)
            for stage in ("calibrate", "select", "train"):
                row = {"what": f"{stage}, {name}", "seconds": state.seconds[stage], "peak_bytes": peak_bytes()}
                self.tell(row)

    def propagate(self) -> None:
        """What a selection propagates: the columns of as many candidates, drawn by chance, and what is known."""
        args, task = self.args, self.task
        operator = Push()(task.graph)
        draw = torch.Generator(task.device).manual_seed(1)
        nodes = torch.randperm(task.nodes, generator=draw, device=task.device)[: args.candidates]
        known = torch.randn(task.nodes, 12, generator=draw, device=task.device) * task.given.known[0][:, None]
        for name in ("first time", "again"):
            seconds, pairs = _timed(lambda: operator.pairs(nodes, Banzhaf().budget // PAIR_BYTES))
            row = {"what": f"columns, {name}", "seconds": seconds, "pairs": len(pairs.node), "bound": pairs.bound}
            self.tell({**row, "peak_bytes": peak_bytes()})
            seconds, _ = _timed(lambda: operator(known))
            self.tell({"what": f"12 of the logits, {name}", "seconds": seconds, "peak_bytes": peak_bytes()})

    def _row(self, what: str, seconds: float, traffic: tuple[float, float]) -> None:
        gathered, least = traffic
        full = self.args.bandwidth * seconds
        self.tell(
            {
                "what": what,
                "seconds": seconds,
                "gathered_bytes": gathered,
                "gathered_share": gathered / full,
                "least_bytes": least,
                "least_share": least / full,
                "peak_bytes": peak_bytes(),
            }
        )

    def _traffic(self, entries: int, widths: list[int]) -> tuple[float, float]:
        """Bytes of sparse products with dense factors so wide: gathered, and at the least."""
        nodes = self.task.nodes
        gathered = sum(entries * (8 + 4 * width) + 4 * nodes * width for width in widths)
        least = sum(8 * entries + 8 * nodes * width for width in widths)
        return float(gathered), float(least)


def _timed(act: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of an act until the device is done with it, and what it gave."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    begin = time.perf_counter()
    result = act()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begin, result


def _task(args: Any, device: torch.device) -> Task:
    """Communities with hubs on the device, and their split."""
    draw = torch.Generator(device).manual_seed(0)
    nodes, classes = args.nodes, args.classes
    label = torch.randint(classes, (nodes,), generator=draw, device=device)
    direction = torch.randn(classes, args.features, generator=draw, device=device)
    x = torch.randn(nodes, args.features, generator=draw, device=device)
    x += (direction / direction.norm(dim=1, keepdim=True))[label]
    data = Data(x=x, edge_index=_edges(label, classes, args.edges // 2, draw), y=label, num_nodes=nodes)
    uniform = torch.rand(nodes, generator=draw, device=device)
    train, val = uniform < 0.08, (uniform >= 0.08) & (uniform < 0.1)
    return Task.of(data, Split.repeated(train, val, uniform >= 0.1, 1), classes)


def _edges(label: Tensor, classes: int, pairs: int, draw: torch.Generator) -> Tensor:
    """Pairs that mostly stay within a class and favour hubs, both ways and without repeats: long [2, E]."""
    nodes, device = len(label), label.device
    order = label.argsort(stable=True)
    ends = torch.bincount(label, minlength=classes).cumsum(0)
    first = torch.randint(nodes, (pairs,), generator=draw, device=device)
    rank = torch.rand(pairs, generator=draw, device=device, dtype=torch.float64).square_()
    high = ends[label[first]]
    low = torch.where(label[first] > 0, ends[(label[first] - 1).clamp(min=0)], 0)
    near = order[(low + rank * (high - low)).long().minimum(high - 1)]
    far = torch.randperm(nodes, generator=draw, device=device)[(rank * nodes).long().clamp(max=nodes - 1)]
    second = torch.where(torch.rand(pairs, generator=draw, device=device) < 0.8, near, far)
    keys = torch.cat([first * nodes + second, second * nodes + first])[(first != second).repeat(2)].unique()
    return torch.stack([keys // nodes, keys % nodes])


if __name__ == "__main__":
    main()
