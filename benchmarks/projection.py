"""What a round would cost on graphs of 10⁸ and 10⁹ edges: rates measured here, multiplied by what they grow with.

    python benchmarks/projection.py [--nodes 1000000] [--bandwidth 4.8e12] [--share 0.3] [--network 25e9] [--json]

First the rates, in seconds of one processor core, on a store of so many nodes with ten edges each (64 features, 16
classes, a GCN of 128 hidden numbers): of a labelled node in an epoch (fan-out 10, 10), of an edge and number when
logits of all nodes are computed layer by layer, the same when the known logits are propagated (ten steps), of one
candidate's column pushed to 1e-3, and of a pair of a candidate and a node when 16 coalitions are valued. Then a table,
which is a projection and no measurement:

    epochs   EPOCHS · N/1000 labelled nodes · rate / (cores · ranks)
    logits   edges · (128 + 16) numbers · rate / cores, or bytes / bandwidth where graph and numbers fit on a GPU
    base     10 · edges · 17 numbers · rate / (cores · ranks), or bytes / bandwidth / ranks
    columns  CANDIDATES · rate / ranks
    values   CANDIDATES · pairs of one · rate / ranks
    network  what a rank hands to all-reduce in a round, and seconds of it at the network's bytes a second

A GPU is taken to have 141 GB, of which graph, features and numbers may fill four fifths, `bandwidth` bytes a second of
which `share` is reached, and 16 cores beside it; every rank has one, and sharing costs nothing but the network.
Logits are computed by every rank for itself. A batch of 1,024 is too small for 64 ranks: they need larger ones.
"""

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from bangs.core.rng import Streams
from bangs.core.types import Split, Task
from bangs.graphs.pagerank_push import Push
from bangs.graphs.store import Store, convert_from
from bangs.nn.models import GCN
from bangs.training.layerwise_inference import Layerwise
from bangs.training.neighbour_sampling import Sampler, Sampling
from bangs.training.trainer import Trainer
from bangs.valuation.information import Information
from measuring import options, show

FEATURES, HIDDEN, CLASSES, STEPS = 64, 128, 16, 10
WIDTH = CLASSES + 1  # numbers propagated for a node: its logits and a one
EPOCHS, CANDIDATES, BATCH = 50, 500, 1024
LABELLED = 5_000
CORES, ROOM = 16, 0.8 * 141e9
MACHINES = {"one GPU": 1, "eight GPUs": 8, "a cluster of 8 × 8": 64}


def rates(nodes: int) -> dict[str, float]:
    """Seconds of one core: a labelled node, an edge and number twice, a column, a pair; and pairs of a column."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        convert_from(f"synthetic:nodes={nodes},edges={10 * nodes},train={LABELLED},val={LABELLED}", path)
        store = Store.open(path)
        masks = (store.get(name)[None] for name in ("train_mask", "val_mask", "test_mask"))
        task = Task.of(store, Split(*masks), store.num_classes)  # type: ignore[arg-type]
        graph, edges = task.graph, len(task.graph.into.nodes)
        learner = Trainer(GCN(HIDDEN), epochs=1, batches=Sampling(BATCH, (10, 10))).prepare(task)
        session = learner._session(task.given, None)
        session.begin([0], None)
        session.train(1, patient=True)  # the first draws the looks
        network = GCN(HIDDEN).build(FEATURES, CLASSES, Streams((0,)))
        sampler = Sampler.of(graph, network.loops, network.normalise)
        free = (~task.given.known[0]).nonzero().squeeze(1)
        x, some = (
            torch.randn(nodes, 8),
            free[torch.randperm(len(free), generator=torch.Generator().manual_seed(0))[:20]],
        )
        operator = Push(error=1e-3)(graph)
        game = Information.of(operator, torch.randn(1, nodes, CLASSES), task.given.known, some[None], normalise="mass")
        game = replace(game, shared_pairs=(operator.pairs(some),))
        pairs = len(game.shared_pairs[0].node)
        _ = game._base
        members = torch.rand(1, 16, len(some)) < 0.2
        return {
            "pairs": pairs / len(some),
            "pair_seconds": _busy(lambda: game.marginals(members)) / pairs,
            "node_seconds": _busy(lambda: session.train(2, patient=True)) / (2 * LABELLED),
            "logit_seconds": _busy(lambda: Layerwise(2**30)(network, sampler, 1)) / edges / (HIDDEN + CLASSES),
            "base_seconds": _busy(lambda: Push()(graph)(x)) / STEPS / edges / x.shape[1],
            "column_seconds": _busy(lambda: operator.pairs(some)) / len(some),
        }


def _busy(act: Callable[[], Any]) -> float:
    """Seconds of the processor."""
    began = time.process_time()
    act()
    return time.process_time() - began


def projected(edges: float, ranks: int, rate: dict[str, float], args: Any) -> dict[str, float]:
    """Seconds of the parts of one round, and what a rank holds and hands on."""
    nodes = edges / 10
    labelled = nodes / 1000
    held = 4 * edges + 8 * nodes + 2 * nodes * FEATURES + 4 * nodes * (HIDDEN + CLASSES + 3 * WIDTH)
    speed = args.bandwidth * args.share
    logits = edges * (HIDDEN + CLASSES) * rate["logit_seconds"] / CORES
    base = STEPS * edges * WIDTH * rate["base_seconds"] / CORES
    if held < ROOM:
        logits = edges * (8 + 4 * (HIDDEN + CLASSES)) / speed
        base = STEPS * edges * (4 + 4 * WIDTH) / speed
    weights = 4 * (FEATURES * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES)
    steps = EPOCHS * math.ceil(labelled / BATCH)
    pairs = CANDIDATES * rate["pairs"]
    handed = 0 if ranks == 1 else steps * weights + EPOCHS * labelled * CLASSES * 4 + 4 * nodes * WIDTH + 20 * pairs
    seconds = {
        "epochs_seconds": EPOCHS * 2 * labelled * rate["node_seconds"] / CORES / ranks,
        "logits_seconds": logits,
        "base_seconds": base / ranks,
        "columns_seconds": CANDIDATES * rate["column_seconds"] / ranks,
        "values_seconds": pairs * rate["pair_seconds"] / ranks,
        "network_seconds": 2 * handed / args.network,
    }
    return {**seconds, "round_seconds": sum(seconds.values()), "held_bytes": held, "network_bytes": handed}


def main() -> None:
    parser = options(__doc__, repeats=None)
    parser.add_argument("--nodes", type=int, default=1_000_000, help="of the store that rates are measured on")
    parser.add_argument("--bandwidth", type=float, default=4.8e12, help="of a GPU's memory, bytes a second")
    parser.add_argument("--share", type=float, default=0.3, help="of the bandwidth that is reached")
    parser.add_argument("--network", type=float, default=25e9, help="between ranks, bytes a second")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rate = rates(args.nodes)
    rows = [
        {"edges": f"{edges:.0e}", "machine": name, **projected(edges, ranks, rate, args)}
        for edges in (1e8, 1e9)
        for name, ranks in MACHINES.items()
    ]
    show(rows, args.json, projection="no measurement", rates=rate)


if __name__ == "__main__":
    main()
