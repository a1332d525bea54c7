"""How far an epoch is from what the machine can do, and where its time goes.

    python benchmarks/limits.py [--dataset cora] [--preset paper] [--labels given] [--threads 1] [--json]

The machine's limits are measured: bytes a second of a copy (of arrays that a cache holds, and of some that it does not)
and operations a second of a dense product. The least an epoch must do is counted: multiplications and additions of its
products, forward, backward and at validation, and every array read and written once. The larger of the two times is the
least time of an epoch. Then a profile says which operations take the rest; its shares are of the clock.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from bangs.core.rng import Streams
from bangs.core.types import Task
from bangs.graphs import splits
from bangs.nn.subgraphs import Subgraph
from bangs.training.presets import trainer
from bangs.training.trainer import Learner
from measuring import graph, in_turns, options, peak_of, show, table
from training import labelled

EPOCHS = 50
GROUPS = {
    "sparse products": ("_embedding_bag", "embedding_bag", "addmm", "_Product", "index_select"),
    "dense products": ("bmm", "mm", "_NarrowMatmul", "_MatmulInPieces"),
    "activation and dropout": (
        "_Activation",
        "ge_",
        "mul",
        "add",
        "relu",
        "clamp_min",
        "elu_backward",
        "copy_",
        "sum",
    ),
    "Adam": ("_fused_adam_", "_foreach_add_"),
}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--labels", choices=["given", "half"], default="given")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    name, data = graph(args.dataset)
    task = Task.of(data, splits.default(data, [0]), data.get("num_classes"))
    learner = trainer("gcn", args.preset, epochs=EPOCHS, patience=10**6).prepare(task)
    labels = labelled(task, data, args.labels)

    def act() -> None:
        learner.fit(labels, Streams((0,)))

    peak = peak_of(act)
    spent = in_turns({"epoch": act}, args.repeats, {"epoch": 1 / EPOCHS})["epoch"]
    cached, memory, arithmetic = _copy(2**18), _copy(2**26), _product(1536)
    flops, moved = _least(learner, labels.known)
    seconds = {"arithmetic": flops / arithmetic, "cache": moved / cached, "memory": moved / memory}
    row = {
        "dataset": name,
        "preset": args.preset,
        "labels": args.labels,
        "seconds": spent.seconds,
        "cpu_seconds": spent.cpu_seconds,
        "peak_bytes": peak,
        "flops": flops,
        "moved_bytes": moved,
        **{f"least_seconds_{limit}": value for limit, value in seconds.items()},
        "times_the_least": spent.cpu_seconds / max(seconds["arithmetic"], seconds["cache"]),
    }
    shares = [{"operation": operation, "share": share} for operation, share in _profile(act).items()]
    limits = {
        "copy in cache, GB/s": cached / 1e9,
        "copy in memory, GB/s": memory / 1e9,
        "dense product, GFLOP/s": arithmetic / 1e9,
    }
    show([row], args.json, limits=limits, shares=shares)
    if not args.json:
        print(table(shares))


def _copy(numbers: int) -> float:
    """Bytes read and written a second by a copy of so many float32."""
    one, other = torch.ones(numbers), torch.empty(numbers)
    return 8 * numbers / _fastest(lambda: other.copy_(one))


def _product(size: int) -> float:
    """Operations a second of a dense float32 product."""
    one, other, out = torch.rand(size, size), torch.rand(size, size), torch.empty(size, size)
    return 2 * size**3 / _fastest(lambda: torch.mm(one, other, out=out))


def _fastest(act: Callable[[], Any]) -> float:
    """Seconds of the fastest of many calls: what the machine can do, not what others leave of it."""
    # the processor's own time is that of all threads together
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    act()
    best, end = float("inf"), time.perf_counter() + 1.0
    while time.perf_counter() < end:
        begin = clock()
        act()
        best = min(best, clock() - begin)
    return best


def _least(learner: Learner, known: torch.Tensor) -> tuple[float, float]:
    """Operations and bytes of one epoch of a GCN with two layers: a step on the known nodes, a look at the held."""
    nodes = known[0].nonzero().squeeze(1).cpu().numpy()
    train_nodes, val_nodes = learner.prepared.k_hop_subgraph(nodes, 2), learner.val_nodes.subgraph
    sizes = [weight.shape[1:] for weight in learner.network.weight]
    weights = sum(rows * columns for rows, columns in sizes)
    forward, forward_bytes = _pass(train_nodes, sizes)
    look, look_bytes = _pass(val_nodes, sizes)
    # backward: the gradient of every product in its weights and, but for the features, in its input
    backward = 2 * forward - 2 * _entries(train_nodes.features.stored) * sizes[0][1]
    adam = 7 * 4 * weights  # weights, gradients and two moments read, three of them written
    return forward + backward + look + 12 * weights, 3 * forward_bytes + look_bytes + adam


def _pass(subgraph: Subgraph, sizes: list[Any]) -> tuple[float, float]:
    """Operations and bytes of one forward pass."""
    (features, hidden), (_, classes) = sizes
    first, last = subgraph.hops[0], subgraph.hops[-1]
    entries = _entries(subgraph.features.stored)
    flops = 2 * (entries * hidden + len(first.values) * hidden)
    flops += 2 * (first.shape[0] * hidden * classes + len(last.values) * classes)
    sparse = 8 * (entries + len(first.values) + len(last.values))
    dense = 4 * (features * hidden + 2 * first.shape[1] * hidden + 2 * first.shape[0] * (hidden + classes))
    return float(flops), float(sparse + dense)


def _entries(stored: Any) -> int:
    return stored.numel() if isinstance(stored, torch.Tensor) else len(stored.values)


def _profile(act: Callable[[], Any]) -> dict[str, float]:
    """The share of each group of operations in the time of four acts."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(4):
            act()
    shares = dict.fromkeys([*GROUPS, "all else"], 0.0)
    total = sum(event.self_cpu_time_total for event in seen.key_averages())
    for event in seen.key_averages():
        name = event.key.removeprefix("aten::")
        names = {name, name.removesuffix("_"), name.removesuffix("Backward"), name.split(".")[0], name.split("#")[0]}
        names.add(name.removesuffix("_forward_only"))
        group = next((group for group, known in GROUPS.items() if names & set(known)), "all else")
        shares[group] += event.self_cpu_time_total / total
    return shares


if __name__ == "__main__":
    main()
