"""Reasons: seconds it takes to say why, on a large graph with hubs.

    python benchmarks/reasons.py [--nodes 200000] [--edges 2000000] [--adopted 1000] [--json]

A made-up run: one node in fifty is labelled, pseudo-labels come a hundred a round, and some nodes have tens of
thousands of neighbours.
"""

import torch

from bangs.estimator.explanation import explain
from bangs.graphs.edges import EdgeList
from bangs.report.predictions_csv import predictions, pseudo_labels
from bangs.runs.scored_nodes import ScoredNodes
from bangs.runs.snapshot import Snapshot
from measuring import in_turns, options, peak_of, show

CLASSES, A_ROUND = 5, 100


def made_up(nodes: int, edges: int, adopted: int, seed: int = 0) -> Snapshot:
    """A run as its recorder would have left it."""
    random = torch.Generator().manual_seed(seed)
    source = torch.randint(nodes, (edges,), generator=random)
    target = (torch.rand(edges, generator=random) ** 3 * nodes).long()  # the first nodes are hubs
    ends = torch.stack([source, target])
    label = torch.randint(CLASSES, (nodes,), generator=random)
    chance = torch.rand(nodes, generator=random)
    given, held = torch.where(chance < 0.02, label, -1), torch.where(chance > 0.995, label, -1)
    free = ((given < 0) & (held < 0)).nonzero().flatten()
    taken = free[torch.randperm(len(free), generator=random)[:adopted]]
    rounds = torch.arange(len(taken)) // A_ROUND + 1
    last = int(rounds.max())
    adopted_round, learned = torch.where(given >= 0, 0, -1), given.clone()
    adopted_round[taken], learned[taken] = rounds, label[taken]
    some = torch.rand(len(taken), generator=random)
    logits = torch.randn(nodes, CLASSES, generator=random)
    labels, confidence = logits.argmax(-1).repeat(last + 1, 1), logits.softmax(-1).amax(-1).repeat(last + 1, 1)
    everyone = torch.ones_like(taken, dtype=torch.bool)
    rank, among = torch.arange(len(taken)) % A_ROUND + 1, torch.full_like(taken, A_ROUND)
    scored_nodes = ScoredNodes(rounds, taken, everyone, label[taken], some, some, some, some, rank, among)
    graph = EdgeList(torch.cat([ends, ends.flip(0)], dim=1), nodes)
    return Snapshot(
        graph, given, held, learned, adopted_round, logits, logits, labels, confidence, scored_nodes, last, []
    )


def main() -> None:
    parser = options(__doc__)
    parser.set_defaults(repeats=1)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--adopted", type=int, default=1000)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    run = made_up(args.nodes, args.edges, args.adopted)
    names, classes = [f"node-{node}" for node in range(args.nodes)], [f"class {label}" for label in range(CLASSES)]
    acts = {
        "the reasons of one node": lambda: explain(run, int(run.scored_nodes.node[0]), names, classes),
        f"pseudo_labels.csv, {args.adopted:,} rows": lambda: pseudo_labels(run, names, classes),
        f"predictions.csv, {args.nodes:,} rows": lambda: "".join(predictions(run, names, classes)),
    }
    times = in_turns(acts, args.repeats)
    case = {"nodes": args.nodes, "edges": args.edges}
    rows = [
        {
            **case,
            "act": name,
            "seconds": timing.seconds,
            "cpu_seconds": timing.cpu_seconds,
            "peak_bytes": peak_of(acts[name]),
        }
        for name, timing in times.items()
    ]
    show(rows, args.json, protocol=f"a made-up run, seed 0; medians of {args.repeats}")


if __name__ == "__main__":
    main()
