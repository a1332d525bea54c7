"""Scores: how good a node is for adoption."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from bangs.core.types import Ranking, Round
from bangs.distributed import ranks
from bangs.errors import InvalidInput
from bangs.graphs.pagerank import PPR, Propagator
from bangs.selection import clusters
from bangs.utils.setting_checks import check_choice, check_integer
from bangs.valuation.banzhaf import DEFAULT, ESTIMATORS, Estimator, Game, Values
from bangs.valuation.distributed_information import share
from bangs.valuation.influence import Normalisation
from bangs.valuation.information import Information


class Score(Protocol):
    """Ranks the nodes of a round; nodes outside the pool get -inf."""

    def __call__(self, round: Round) -> Ranking: ...


@dataclass(frozen=True)
class Chance:
    """A uniform random number for every node of the pool."""

    def __call__(self, round: Round) -> Ranking:
        draw = round.rng.at("chance").rand(round.pool.shape[1], device=round.pool.device)
        return Ranking(draw.masked_fill(~round.pool, float("-inf")))


@dataclass(frozen=True)
class Confidence:
    """The probability of the predicted class."""

    def __call__(self, round: Round) -> Ranking:
        return Ranking(round.prediction.confidence.masked_fill(~round.pool, float("-inf")))


@dataclass(frozen=True)
class Logit:
    """The largest logit, which DR-GST in the published BANGS code compares with its threshold."""

    def __call__(self, round: Round) -> Ranking:
        return Ranking(round.prediction.logits.amax(-1).masked_fill(~round.pool, float("-inf")))


@dataclass(frozen=True)
class Agreement:
    """The confidence of nodes whose cluster has the class that the teacher predicts (M3S, Sun et al. 2020).

    k-means divides the teacher's embeddings of the pool (or logits, as in the port that the BANGS paper ran) into
    `clusters`, each labelled with the nearest class. Without `among` every node of the pool is checked. With a quota
    such as `TopPerClass(15)` only the nodes it takes by confidence are checked, as in M3S; a rejected node is not
    replaced.
    """

    clusters: int = 200
    steps: int = 20
    among: Callable[[Tensor, Tensor], Tensor] | None = None
    space: Literal["embeddings", "logits"] = "embeddings"

    def __post_init__(self) -> None:
        for name in ("clusters", "steps"):
            check_integer(f"Agreement.{name}", getattr(self, name), least=1)
        check_choice("Agreement.space", self.space, ("embeddings", "logits"))

    def __call__(self, round: Round) -> Ranking:
        confidence = round.prediction.confidence.masked_fill(~round.pool, float("-inf"))
        label = round.prediction.label
        generators = round.rng.at("clusters").generators(round.pool.device)
        points = round.raw.logits if self.space == "logits" else round.teacher.embed(round.graph)
        cluster_label = clusters.cluster_labels(points, round.pool, round.labels, self.clusters, self.steps, generators)
        checked = round.pool if self.among is None else self.among(confidence, label)
        return Ranking(confidence.masked_fill(~checked | (cluster_label != label), float("-inf")))


@dataclass(frozen=True)
class Banzhaf:
    """The k-bounded Banzhaf value of a candidate in the information game.

    The players are the `candidates` most confident nodes of the pool; `estimate` computes their values. With
    `estimate = Alone()` it is the paper's "no Banzhaf" ablation: the utility of each candidate by itself. The game has
    its default `tolerance` of 0.3 of a logit; `Information.of(…, tolerance=0)` is exact.
    """

    k: int = 100
    candidates: int = 200
    estimate: Estimator = field(default_factory=lambda: ESTIMATORS[DEFAULT](None))
    propagate: Propagator = field(default_factory=PPR)
    normalise: Normalisation = "none"
    budget: int = 512 * 2**20  # bytes that a valuation may use

    def __post_init__(self) -> None:
        for name in ("k", "candidates", "budget"):
            check_integer(f"Banzhaf.{name}", getattr(self, name), least=1)
        check_choice("Banzhaf.normalise", self.normalise, get_args(Normalisation))
        if self.candidates < self.k:
            raise InvalidInput(
                f"Banzhaf.candidates (K) must be at least k, got K = {self.candidates} and k = {self.k}; "
                "the k nodes are chosen among the K candidates"
            )

    def __call__(self, round: Round) -> Ranking:
        score = torch.full_like(round.prediction.confidence, float("-inf"))
        stderr = torch.full_like(score, float("nan"))
        evaluations = 0
        sizes = round.pool.sum(1).clamp_max(min(self.candidates, round.pool.shape[1]))
        # runs with the same number of candidates are one game
        for size in sorted(set(sizes.tolist()) - {0}):
            runs = (sizes == size).nonzero().squeeze(1)
            players = ranks.broadcast(_most_confident(round, runs, size))
            game = Information.of(
                round.task.cached(self.propagate),
                round.prediction.logits if len(runs) == len(sizes) else round.prediction.logits[runs],
                round.labels.known[runs],
                players,
                normalise=self.normalise,
                budget=self.budget,
                seeds=tuple(round.rng.only(runs.tolist()).at("nodes").numbers()),
            )
            generators = round.rng.only(runs.tolist()).at("coalitions").generators(score.device)
            values = _check_values(self.estimate(share(game), min(self.k, size), generators), players)
            score[runs[:, None], players] = values.mean.to(score.dtype)
            if values.stderr is not None:
                stderr[runs[:, None], players] = values.stderr.to(score.dtype)
            evaluations = max(evaluations, values.evaluations)
        return Ranking(score, None if bool(stderr.isnan().all()) else stderr, evaluations)


@dataclass(frozen=True)
class Alone:
    """The utility of every player by itself, U({i}), instead of its Banzhaf value."""

    def __call__(self, game: Game, k: int, generators: Sequence[torch.Generator] = ()) -> Values:
        singletons = torch.eye(game.players, dtype=torch.bool, device=game.device).expand(game.runs, -1, -1)
        return Values(game(singletons).double(), None, game.players)


def _check_values(values: object, players: Tensor) -> Values:
    """The values an estimator returned; they must have one number per player, [R, K]."""
    if not isinstance(values, Values):
        raise InvalidInput(
            f"an estimator must return Values, got {type(values).__name__}; write Values(mean, stderr, …)"
        )
    for name, given in (("mean", values.mean), ("stderr", values.stderr)):
        if given is not None and given.shape != players.shape:
            raise InvalidInput(
                f"Values.{name} of an estimator must have the shape [R, K] = {list(players.shape)}, "
                f"got {list(given.shape)}"
            )
    return values


def _most_confident(round: Round, runs: Tensor, size: int) -> Tensor:
    """The most confident nodes of the pool of some runs: long [len(runs), size]."""
    confidence = round.prediction.confidence[runs].masked_fill(~round.pool[runs], float("-inf"))
    return confidence.topk(size, dim=1).indices
