"""Settings of soft labels, chosen blind: no test label is read, only validation labels.

    python benchmarks/soft_settings.py --graphs cora citeseer --per-class 20 --models gcn --device cuda --json

The validation nodes of every run are cut in two halves. One half does what validation does in a run: it stops epochs,
chooses the round and gives class shares. The other half judges. One JSON line for every graph, number of labels,
model and variant: mean accuracy of the judging half at the chosen round, at the last round, and by round.
`--per-class 0` takes the public split.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.types import Round, Split, Task
from bangs.graphs import splits
from bangs.graphs.datasets import loading
from bangs.graphs.pagerank import PPR
from bangs.selftraining.budget import Budget
from bangs.selftraining.loop import Method, SelfTrainer, State
from bangs.selftraining.loss_weights import Balance, BanzhafWeight, Certainty, Product
from bangs.selftraining.methods import method
from bangs.selftraining.soft_labels import Believe, Sharpen
from bangs.training.presets import trainer

VALIDATION = 500  # nodes, both halves together


@dataclass(frozen=True)
class Smoothed:
    """Beliefs after personalised PageRank, given labels staying as they are."""

    believe: Believe
    alpha: float = 0.15
    steps: int = 10
    power: float = 1.0

    def __call__(self, round: Round) -> Tensor:
        belief = self.believe(round)
        known = round.labels.adopted_round == 0
        given = torch.nn.functional.one_hot(round.labels.target.clamp_min(0), belief.shape[-1]).float()
        belief = torch.where(known[..., None], given, belief)
        operator = round.task.cached(PPR(self.alpha, self.steps))
        R, N, C = belief.shape
        spread = operator(belief.permute(1, 0, 2).reshape(N, R * C)).reshape(N, R, C).permute(1, 0, 2)
        spread = spread.clamp_min(1e-12).pow(self.power)
        return spread / spread.sum(-1, keepdim=True)


def soft(**changes: Any) -> Callable[[int], Method]:
    def make(rounds: int) -> Method:
        return replace(method("soft", Budget(rounds=rounds)), **changes)

    return make


def named(name: str, **settings: Any) -> Callable[[int], Method]:
    return lambda rounds: method(name, Budget(rounds=rounds, **settings))


RANK = Product(BanzhafWeight("rank"), Certainty(3.0))
ALIGN = Sharpen(0.5, "validation")
DROP = {"dropout": 0.7, "input_dropout": 0.7}
VARIANTS: dict[str, tuple[Callable[[int], Method], dict[str, Any]]] = {
    "raw": (named("raw"), {}),
    "confidence": (named("confidence", teacher="first"), {}),
    "bangs": (named("bangs", teacher="first", normalise="mass", candidates=500), {}),
    "bangs-best": (named("bangs", teacher="best", normalise="mass", candidates=500), {}),
    "soft": (soft(), {}),
    "T=0.3": (soft(believe=Sharpen(0.3)), {}),
    "T=0.7": (soft(believe=Sharpen(0.7)), {}),
    "T=1": (soft(believe=Sharpen(1.0)), {}),
    "p=0": (soft(weigh=Balance(Certainty(0.0))), {}),
    "p=1": (soft(weigh=Balance(Certainty(1.0))), {}),
    "lam=0.5": (soft(weigh=Balance(Certainty(3.0), 0.5)), {}),
    "lam=2": (soft(weigh=Balance(Certainty(3.0), 2.0)), {}),
    "lam=4": (soft(weigh=Balance(Certainty(3.0), 4.0)), {}),
    "aligned": (soft(believe=ALIGN), {}),
    "aligned,p=0": (soft(believe=ALIGN, weigh=Balance(Certainty(0.0))), {}),
    "aligned,lam=2": (soft(believe=ALIGN, weigh=Balance(Certainty(3.0), 2.0)), {}),
    "rank": (soft(weigh=Balance(RANK)), {}),
    "value": (soft(weigh=Balance(BanzhafWeight("value"))), {}),
    "rank,aligned": (soft(believe=ALIGN, weigh=Balance(RANK)), {}),
    "smooth": (soft(believe=Smoothed(Sharpen(0.5))), {}),
    "smooth,sharp": (soft(believe=Smoothed(Sharpen(1.0), power=2.0)), {}),
    "smooth0.5": (soft(believe=Smoothed(Sharpen(0.5), alpha=0.5)), {}),
    "aligned,smooth": (soft(believe=Smoothed(ALIGN)), {}),
    "warm": (soft(start="teacher"), {}),
    "loss": (soft(), {"monitor": "loss"}),
    "wd=1e-4": (soft(), {"weight_decay": 1e-4}),
    "wd=2e-3": (soft(), {"weight_decay": 2e-3}),
    "patience=100": (soft(), {"patience": 100}),
    "published": (soft(), {"spread": "features"}),
    "raw,published": (named("raw"), {"spread": "features"}),
    "nobn": (soft(), {"batch_norm": False}),
    "samples=2": (soft(), {"samples": 2}),
    "raw,samples=2": (named("raw"), {"samples": 2}),
    "hidden=128": (soft(), {"hidden": 128}),
    "raw,loss": (named("raw"), {"monitor": "loss"}),
    "soft,loss": (soft(), {"monitor": "loss"}),
    "aligned,loss": (soft(believe=ALIGN), {"monitor": "loss"}),
    "aligned,T=0.3,loss": (soft(believe=Sharpen(0.3, "validation")), {"monitor": "loss"}),
    "aligned,T=0.7,loss": (soft(believe=Sharpen(0.7, "validation")), {"monitor": "loss"}),
    "aligned,p=1,loss": (soft(believe=ALIGN, weigh=Balance(Certainty(1.0))), {"monitor": "loss"}),
    "aligned,p=6,loss": (soft(believe=ALIGN, weigh=Balance(Certainty(6.0))), {"monitor": "loss"}),
    "aligned,lam=2,loss": (soft(believe=ALIGN, weigh=Balance(Certainty(3.0), 2.0)), {"monitor": "loss"}),
    "rank,loss": (soft(weigh=Balance(RANK)), {"monitor": "loss"}),
    "rank,aligned,loss": (soft(believe=ALIGN, weigh=Balance(RANK)), {"monitor": "loss"}),
    "smooth,loss": (soft(believe=Smoothed(Sharpen(0.5))), {"monitor": "loss"}),
    "aligned,smooth,loss": (soft(believe=Smoothed(ALIGN)), {"monitor": "loss"}),
    "aligned,loss,patience=50": (soft(believe=ALIGN), {"monitor": "loss", "patience": 50}),
    "aligned,loss,wd=1e-4": (soft(believe=ALIGN), {"monitor": "loss", "weight_decay": 1e-4}),
    "aligned,loss,drop=0.7": (soft(believe=ALIGN), {"monitor": "loss", "dropout": 0.7, "input_dropout": 0.7}),
    "aligned,loss,hidden=256": (soft(believe=ALIGN), {"monitor": "loss", "hidden": 256}),
    "given,loss": (soft(believe=Sharpen(0.5, "given")), {"monitor": "loss"}),
    "soft,loss,drop=0.7": (soft(), {"monitor": "loss", **DROP}),
    "soft,drop=0.7": (soft(), DROP),
    "aligned,drop=0.7": (soft(believe=ALIGN), DROP),
    "aligned,lam=2,drop=0.7": (soft(believe=ALIGN, weigh=Balance(Certainty(3.0), 2.0)), DROP),
    "aligned,lam=2,loss,drop=0.7": (
        soft(believe=ALIGN, weigh=Balance(Certainty(3.0), 2.0)),
        {"monitor": "loss", **DROP},
    ),
    "rank,aligned,drop=0.7": (soft(believe=ALIGN, weigh=Balance(RANK)), DROP),
    "rank,aligned,loss,drop=0.7": (soft(believe=ALIGN, weigh=Balance(RANK)), {"monitor": "loss", **DROP}),
    "aligned,loss,drop=0.8": (soft(believe=ALIGN), {"monitor": "loss", "dropout": 0.8, "input_dropout": 0.8}),
    "aligned,drop=0.8": (soft(believe=ALIGN), {"dropout": 0.8, "input_dropout": 0.8}),
    "raw,drop=0.7": (named("raw"), DROP),
    "raw,scaled": (named("raw"), {"scaled": True}),
    "aligned,scaled": (soft(believe=ALIGN), {"scaled": True}),
    "aligned,scaled,lr=0.01": (soft(believe=ALIGN), {"scaled": True, "lr": 0.01}),
    "aligned,scaled,lr=0.05": (soft(believe=ALIGN), {"scaled": True, "lr": 0.05}),
    "aligned,published": (soft(believe=ALIGN), {"spread": "features"}),
    "aligned,T=0.3": (soft(believe=Sharpen(0.3, "validation")), {}),
    "aligned,patience=50": (soft(believe=ALIGN), {"patience": 50}),
    "aligned,patience=100": (soft(believe=ALIGN), {"patience": 100}),
    **{
        f"aligned,loss,drop={drop},patience={patience}": (
            soft(believe=ALIGN),
            {"monitor": "loss", "dropout": drop, "input_dropout": drop, "patience": patience},
        )
        for drop in (0.7, 0.8)
        for patience in (30, 50, 100)
    },
    "aligned,samples=2,drop=0.7": (soft(believe=ALIGN), {"samples": 2, **DROP}),
    "soft,published": (soft(), {"spread": "features"}),
    "aligned,published,samples=2": (soft(believe=ALIGN), {"spread": "features", "samples": 2}),
    "aligned,smooth,loss,drop=0.8": (
        soft(believe=Smoothed(ALIGN)),
        {"monitor": "loss", "dropout": 0.8, "input_dropout": 0.8},
    ),
    "aligned,lr=0.01": (soft(believe=ALIGN), {"lr": 0.01}),
    "aligned,samples=2,loss": (soft(believe=ALIGN), {"samples": 2, "monitor": "loss"}),
    "lr=0.01": (soft(believe=ALIGN), {"lr": 0.01}),
    "raw,lr=0.01": (named("raw"), {"lr": 0.01}),
}


def scaled(data: Data, order: int = 5) -> Data:
    """The graph with every feature divided by its spread over the nodes after `order` hops."""
    x = data.x.to_dense() if data.x.layout != torch.strided else data.x
    row, col = data.edge_index
    degree = torch.bincount(col, minlength=len(x)).float() + 1
    weight = (degree[row] * degree[col]).rsqrt()
    hop, total = x, x.clone()
    for _ in range(order):
        hop = torch.zeros_like(x).index_add_(0, col, hop[row] * weight[:, None]) + hop / degree[:, None]
        total += hop
    spread = (total / (order + 1)).std(0)
    out = copy(data)
    out.x = x / spread.clamp_min(1e-6 * float(spread.max()))
    return out


def cut(data: Data, per_class: int, seeds: tuple[int, ...], validation: int) -> tuple[Split, Tensor]:
    """The split that a run sees, and the judging half of its validation nodes: bool [R, N]."""
    if per_class == 0:
        split = splits.default(data, seeds)
    else:
        split = splits.per_class(data.y, per_class, validation, None, seeds, scarce="half")
    judge = torch.zeros_like(split.val)
    for run, (seed, val) in enumerate(zip(seeds, split.val, strict=True)):
        nodes = val.nonzero().squeeze(1)
        order = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(1000 + seed))
        judge[run, nodes[order[: len(nodes) // 2]]] = True
    return Split(split.train, split.val & ~judge, split.test), judge


class Judge:
    """Accuracy of the judging half and the merit of every round."""

    def __init__(self, label: Tensor, judge: Tensor):
        self.label, self.judge = label, judge
        self.accuracy: list[Tensor] = []
        self.mean_accuracy: list[Tensor] = []  # of the mean of the probabilities of rounds 1 … t
        self.total = torch.zeros(())
        self.merit: list[Tensor] = []

    def __call__(self, state: State) -> None:
        right = ((state.prediction.label == self.label) & self.judge).sum(1).double() / self.judge.sum(1)
        self.accuracy.append(right.cpu())
        self.total = state.prediction.log_probs.exp() + (self.total if state.index > 1 else 0.0)
        mean_right = ((self.total.argmax(-1) == self.label) & self.judge).sum(1).double() / self.judge.sum(1)
        self.mean_accuracy.append(mean_right.cpu())
        held = state.student.learner.task.validation
        logs = state.prediction.log_probs.gather(2, held.clamp_min(0)[..., None])[..., 0]
        nll = -(logs * (held >= 0)).sum(1).double() / (held >= 0).sum(1)
        self.merit.append((state.validation - 1e-6 * nll).cpu())

    def row(self) -> dict[str, Any]:
        accuracy, merit = torch.stack(self.accuracy), torch.stack(self.merit)
        chosen = merit.argmax(0)
        picked = accuracy.gather(0, chosen[None])[0]
        return {
            "chosen": round(100 * float(picked.mean()), 2),
            "std": round(100 * float(picked.std()), 2) if len(picked) > 1 else 0.0,
            "last": round(100 * float(accuracy[-1].mean()), 2),
            "by_round": [round(100 * float(accuracies.mean()), 1) for accuracies in accuracy],
            "mean_of_rounds": [round(100 * float(accuracies.mean()), 1) for accuracies in self.mean_accuracy],
            "per_seed": [round(100 * float(accuracies), 2) for accuracies in picked],
            "rounds_chosen": chosen.tolist(),
        }


def run(data: Data, per_class: int, model: str, variant: str, args: argparse.Namespace) -> dict[str, Any]:
    seeds = tuple(range(args.seeds))
    make, changes = VARIANTS[variant]
    name = args.graph
    learner = trainer(model, "tuned", name)
    changes = dict(changes)
    if changes.pop("scaled", False):
        data = scaled(data)
    model_changes = {key: value for key, value in changes.items() if hasattr(learner.model, key)}
    learner = replace(learner, model=replace(learner.model, **model_changes)) if model_changes else learner
    learner = replace(learner, **{key: value for key, value in changes.items() if key not in model_changes})
    if args.epochs:
        learner = replace(learner, epochs=args.epochs)
    split, judge = cut(data, per_class, seeds, args.validation)
    task = Task.of(data, split, int(data.y.max()) + 1).to(args.device)
    label = torch.where(judge, data.y.expand_as(judge), -2).to(args.device)
    witness = Judge(label, judge.to(args.device))
    begin = time.perf_counter()
    SelfTrainer(learner, make(args.rounds), [witness]).fit(task, seeds)
    return {**witness.row(), "seconds": round(time.perf_counter() - begin, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--per-class", nargs="+", type=int, default=[0])
    parser.add_argument("--models", nargs="+", default=["gcn"])
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--validation", type=int, default=VALIDATION)
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=None, help="also append the lines to this file")
    args = parser.parse_args()
    for graph in args.graphs:
        args.graph = graph
        data = loading.load(graph if graph in loading.DATASETS else f"{graph}.npz", args.data)
        for per_class in args.per_class:
            for model in args.models:
                for variant in args.variants:
                    head = {"graph": graph, "per_class": per_class, "model": model, "variant": variant}
                    try:
                        row = {**head, **run(data, per_class, model, variant, args)}
                    except Exception as error:
                        row = {**head, "error": f"{type(error).__name__}: {error}"[:300]}
                    line = json.dumps(row)
                    print(line, flush=True)
                    if args.out:
                        with args.out.open("a") as file:
                            file.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
