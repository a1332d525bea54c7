"""Rounds to measure selection on: a teacher's calibrated logits, what is known, and who may play."""

from dataclasses import dataclass

import torch
from scipy.stats import spearmanr
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration.calibrators import Temperature
from bangs.core.rng import Streams
from bangs.core.types import Split, Task
from bangs.errors import BangsError
from bangs.graphs import splits
from bangs.graphs.datasets import loading, synthetic
from bangs.graphs.pagerank import PPR, Operator
from bangs.training.presets import trainer
from bangs.valuation.banzhaf import Marginals
from bangs.valuation.information import Information
from measuring import graph


@dataclass(frozen=True, eq=False)
class Occasion:
    """One round of one run."""

    name: str
    graph: Data
    operator: Operator
    logits: Tensor  # float [N, C], calibrated
    known: Tensor  # bool [N]
    pool: Tensor  # bool [N]

    def players(self, count: int) -> Tensor:
        """The most confident nodes of the pool: long [K]."""
        confidence = self.logits.softmax(1).amax(1).masked_fill(~self.pool, -1)
        return confidence.topk(count).indices

    def game(self, count: int, tolerance: float = 0.3, budget: int = 512 * 2**20) -> Information:
        return Information.of(
            self.operator,
            self.logits[None],
            self.known[None],
            self.players(count)[None],
            tolerance=tolerance,
            budget=budget,
        )

    def after(self, adopted: int) -> "Occasion":
        """A later round, the most confident nodes being adopted."""
        known = self.known.clone()
        known[self.players(adopted)] = True
        return Occasion(f"{self.name}+{adopted}", self.graph, self.operator, self.logits, known, self.pool & ~known)


def trained(dataset: str, seed: int = 0) -> Occasion:
    """The first round on a real graph: a tuned GCN, its temperature fitted on the validation nodes."""
    dataset, data = graph(dataset)
    split = splits.default(data, [seed])
    task = Task.of(data, split, data.get("num_classes"))
    teacher = trainer("gcn", "tuned").fit(task, task.given, Streams((seed,)))
    prediction = Temperature()(teacher.predict(task.graph), task)
    return _occasion(dataset, data, prediction.logits[0], split)


def pretended(name: str, data: Data, seed: int = 0) -> Occasion:
    """The first round on a graph with labels, 5 % of them known, and a teacher who is right three times in four."""
    random = torch.Generator().manual_seed(seed)
    classes = int(data.y.max()) + 1
    right = torch.rand(len(data.y), generator=random) < 0.75
    noisy = torch.where(right, data.y, torch.randint(classes, (len(data.y),), generator=random))
    logits = 3 * torch.nn.functional.one_hot(noisy, classes) + torch.randn(len(noisy), classes, generator=random)
    return _occasion(name, data, logits, splits.by_share(data.y, 0.05, 0.15, [seed]))


def lastfm_size() -> Occasion:
    """LastFM Asia's graph and labels (`lastfm_asia_nofeat.npz`), else a citation network of its size."""
    try:
        data = loading.load("lastfm_asia_nofeat")
    except BangsError:
        data = synthetic.citation(7624, 18, 64, mean_degree=7.3)
    return pretended("lastfm size", data)


def flickr_size() -> Occasion:
    """A citation network of Flickr's size."""
    return pretended("flickr size", synthetic.citation(89_250, 7, 64, mean_degree=10.08))


@dataclass(frozen=True, eq=False)
class Reference:
    """Values of high precision, and how well two independent halves of them agree."""

    values: Tensor  # float64 [K]
    split_half: float

    @classmethod
    def of(cls, occasion: Occasion, players: int, k: int, samples: int, tolerance: float = 0.0) -> "Reference":
        """The mean of two halves of marginals; with no tolerance every marginal is exact."""
        game = occasion.game(players, tolerance)
        # seeds far from those that estimators are tried with
        halves = [Marginals(samples)(game, k, [torch.Generator().manual_seed(10**6 + half)]).mean[0] for half in (1, 2)]
        return cls((halves[0] + halves[1]) / 2, rank_correlation(*halves))


def rank_correlation(one: Tensor, other: Tensor) -> float:
    return float(spearmanr(one.cpu().numpy(), other.cpu().numpy()).statistic)


def agreement(one: Tensor, other: Tensor, k: int) -> float:
    """The share of the k best that two rankings have in common."""
    return len(set(one.topk(k).indices.tolist()) & set(other.topk(k).indices.tolist())) / k


def _occasion(name: str, data: Data, logits: Tensor, split: Split) -> Occasion:
    pool = ~(split.train | split.val)[0]
    return Occasion(name, data, PPR()(data), logits, split.train[0], pool)
