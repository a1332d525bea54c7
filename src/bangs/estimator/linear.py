"""Linear models on propagated features: the cheapest models that are hard to beat with few labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from bangs.core.choice_checks import check_choice
from bangs.core.number_checks import check_number
from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Task, one_hot
from bangs.errors import InvalidInput
from bangs.graphs.sparse import Sparse, adjacency, to_scipy
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network
from bangs.nn.models.base import Checked
from bangs.nn.subgraphs import Subgraph
from bangs.training.teacher import Teacher

Matrix = npt.NDArray[np.float32]
Wide = Any  # numpy [N, F], or a scipy matrix

MOST = 20_000  # nodes without a given label that one fit learns from; more hardly move so few weights
OVERSAMPLED = 16  # directions beyond those asked for, that make a random projection exact enough
TINY = 1e-6


@dataclass(frozen=True)
class PropagatedLinear(Checked):
    """Logits = u((P X̃ − m) / s) W + b, with a propagation P without weights.

    X̃ are the features, with rows of length one if `rows = "unit"`; P is the identity (`spread = "none"`), Â^reach
    (`"hops"`, SGC of Wu et al. 2019), or H' = (1−alpha) Â H + alpha X̃ taken `reach` times (`"pagerank"`, as in APPNP).
    `"scales"` has all three side by side, with two hops. Â is D^-½ (A + I) D^-½, or a random walk's D^-1 (A + I) with
    `normalise = "row"`: then all neighbours count alike. With `columns = "idf"` a column that n of N nodes have is
    multiplied by √log((1 + N) / (1 + n)), as rare words are. Of P X̃ the first `width` principal directions are kept; m
    and s are its mean and scale, and u makes rows of length one if `rows = "unit"`. The directions are found once, from
    the fitted graph; W and b are learned.
    """

    spread: Literal["none", "hops", "pagerank", "scales"] = "pagerank"
    reach: int = 10
    alpha: float = 0.1
    width: int = 128
    rows: Literal["unit", "given"] = "unit"
    columns: Literal["given", "idf"] = "given"
    normalise: Literal["symmetric", "row"] = "symmetric"

    def __post_init__(self) -> None:
        super().__post_init__()
        words: dict[str, tuple[str, ...]] = {
            "spread": ("none", "hops", "pagerank", "scales"),
            "rows": ("unit", "given"),
            "columns": ("given", "idf"),
            "normalise": ("symmetric", "row"),
        }
        for name, known in words.items():
            check_choice(f"PropagatedLinear.{name}", getattr(self, name), known)
        if self.reach < 0 or self.width < 1:
            raise InvalidInput(
                f"PropagatedLinear needs reach of 0 or more and width of 1 or more, got {self.reach} and {self.width}"
            )

    @property
    def parts(self) -> "tuple[PropagatedLinear, ...]":
        """The models whose inputs stand side by side: of `"scales"` three, else itself."""
        if self.spread != "scales":
            return (self,)
        near, far = replace(self, spread="hops", reach=2), replace(self, spread="pagerank")
        return (replace(self, spread="none", reach=0), near, far)

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Linear(len(rng), features, len(self.parts) * min(features, self.width), classes)

    def propagate(self, matrix: Sparse, x: Tensor) -> Tensor:
        """P x of dense columns x [N, d]."""
        if self.spread == "none" or self.reach == 0:
            return x
        h = x
        for _ in range(self.reach):
            h = matrix @ h if self.spread == "hops" else matrix.matmul(h, x, self.alpha / (1 - self.alpha))
            if self.spread == "pagerank":
                h = h * (1 - self.alpha)
        return h

    def logits(self, weights: Mapping[str, Tensor], graph: Data, place: torch.device) -> Tensor:
        """What models with these weights say of every node of a graph: [R, N, C]."""
        at = {name: value.to(place) for name, value in weights.items()}
        x, matrix, parts = _rows(graph.x, self.rows), self._matrix(graph, place), self.parts
        basis, centre = (at[name][0].chunk(len(parts), 1) for name in ("basis", "centre"))
        found = []
        for own, directions, mean in zip(parts, basis, centre, strict=True):
            product = torch.from_numpy(_times(x, directions.cpu().numpy())).to(place)
            found.append((own._shaped(own.propagate(matrix, product), mean), directions, mean))
        return torch.matmul(_side_by_side(found)[0], at["weight"]) + at["bias"]

    def principal(self, graph: Data, rng: Streams, place: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """The inputs of W [N, d], the directions [F, d] and the mean [1, d], found from a graph.

        A random projection and two power iterations (Halko, Martinsson & Tropp 2011).
        """
        if len(self.parts) > 1:
            return _side_by_side([own.principal(graph, rng, place) for own in self.parts])
        x = _rows(graph.x, self.rows)
        if self.columns == "idf":
            rarity = _rarity(x)
            x = x * rarity if isinstance(x, np.ndarray) else sp.csr_array(x.multiply(rarity))
        matrix = self._matrix(graph, place)

        def spread(by: Sparse, dense: Matrix) -> Matrix:
            own: Matrix = self.propagate(by, torch.from_numpy(np.ascontiguousarray(dense)).to(place)).cpu().numpy()
            return own

        features = x.shape[1]
        if features <= self.width:
            basis: Matrix = np.eye(features, dtype=np.float32)
            z = spread(matrix, _times(x, basis))
        else:
            width = min(self.width + OVERSAMPLED, *x.shape)
            start = rng.at("projection").randn(features, width)[0].numpy()
            span = spread(matrix, _times(x, start))
            turned = start
            for _ in range(2):
                turned = _orthonormal(_times(x.T, spread(matrix.T, _orthonormal(span))))
                span = spread(matrix, _times(x, turned))
            _, vectors = np.linalg.eigh((span.T @ span).astype(np.float64))
            basis = turned @ vectors[:, ::-1][:, : self.width].astype(np.float32)
            z = span @ vectors[:, ::-1][:, : self.width].astype(np.float32)
            # a graph of fewer nodes has fewer directions; the others are zero, so that shapes follow from the settings
            basis, z = (np.pad(own, ((0, 0), (0, self.width - own.shape[1]))) for own in (basis, z))
        if self.columns == "idf":
            basis = rarity[:, None] * basis  # so that new nodes need no weights of their own
        centre = z.mean(0, keepdims=True)
        scale = 1 / max(float(np.sqrt(np.square(z - centre).sum(1).mean())), TINY)
        inputs, directions, mean = (torch.from_numpy(np.ascontiguousarray(own * scale)) for own in (z, basis, centre))
        return self._shaped(inputs.to(place), mean.to(place)), directions, mean

    def _matrix(self, graph: Data, place: torch.device) -> Sparse:
        return Sparse.of(adjacency(graph, loops=1.0, normalise=self.normalise), place)

    def _shaped(self, z: Tensor, centre: Tensor) -> Tensor:
        z = z - centre
        return z / z.norm(dim=1, keepdim=True).clamp_min(TINY) if self.rows == "unit" else z


class _Linear(Network):
    """The weights of R linear models; directions and mean are shared."""

    def __init__(self, runs: int, features: int, width: int, classes: int) -> None:
        super().__init__()
        self.basis = nn.Parameter(torch.zeros(1, features, width))
        self.centre = nn.Parameter(torch.zeros(1, 1, width))
        self.weight = nn.Parameter(torch.zeros(runs, width, classes))
        self.bias = nn.Parameter(torch.zeros(runs, 1, classes))

    def forward(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        raise NotImplementedError("PropagatedLinear.logits computes the logits")


class _Head(Network):
    """What is learned of R linear models."""

    def __init__(self, runs: int, width: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(runs, width, classes))
        self.bias = nn.Parameter(torch.zeros(runs, 1, classes))


@dataclass(frozen=True)
class LinearTrainer:
    """Multinomial logistic regression by L-BFGS, to convergence; stands where a `Trainer` does.

    The loss of a run is the weighted mean cross-entropy over its labelled nodes plus ridge/2 · |W|².
    """

    model: PropagatedLinear = field(default_factory=PropagatedLinear)
    ridge: float = 1e-3
    iterations: int = 40
    again: int = 15  # iterations where the last round's weights are the start

    batches = None

    def __post_init__(self) -> None:
        check_number("LinearTrainer.ridge", self.ridge, within="(0, inf)")

    def prepare(self, task: Task) -> "LinearLearner":
        return LinearLearner(self, task)


class LinearLearner:
    """A task prepared for logistic regression: its propagated features."""

    def __init__(self, trainer: LinearTrainer, task: Task):
        self.trainer, self.task = trainer, task
        parts = [task.cached(_Principal(own, task.device)) for own in trainer.model.parts]
        self.inputs, basis, centre = _side_by_side(parts)
        self.shared = {"basis": basis[None], "centre": centre[None]}  # the weights that all runs share
        self.network = _Head(task.runs, self.inputs.shape[1], task.classes)

    def fit(
        self, labels: Labels, rng: Streams, *, start: dict[str, Tensor] | None = None, **corrections: Any
    ) -> Teacher:
        """R models of the labels [R, N]; `start` only saves time, since the loss has one minimum."""
        if any(part is not None for part in corrections.values()):
            raise InvalidInput("a linear model corrects no loss and keeps no early weights; choose another method")
        known, (nodes, times) = labels.known, self._sampled(labels)
        inputs, classes = self.inputs[nodes], self.task.classes
        belief = labels.belief[:, nodes] if labels.belief is not None else one_hot(labels.target[:, nodes], classes)
        share = labels.weight[:, nodes] * times / known.sum(1, keepdim=True)
        target = (belief * share[..., None]).permute(2, 0, 1).contiguous()  # [C, R, n]
        weight, bias = self._minimum(inputs, target, start)
        weights = {"weight": weight, "bias": bias}
        logits = self._logits(weights)
        held = self.task.held
        right = ((logits.argmax(-1) == self.task.validation) & held).sum(1)
        sound = logits.isfinite().flatten(1).all(1)
        epochs = torch.full_like(right, self.trainer.iterations)
        return Teacher(self, weights, right.double() / held.sum(1).clamp_min(1), epochs, sound)  # type: ignore[arg-type]

    def predict(self, weights: Mapping[str, Tensor], graph: Any, masks: DropoutMasks | None = None) -> Prediction:
        """Logits [R, N, C] under the given weights."""
        if graph is not self.task.graph or masks is not None:
            raise InvalidInput("a linear model is looked at on its own graph only; choose a method without views")
        return Prediction(self._logits(weights))

    def embed(self, weights: Mapping[str, Tensor], graph: Data) -> Tensor:
        """The propagated features [R, N, d]."""
        return self.inputs.expand(self.task.runs, -1, -1)

    def _sampled(self, labels: Labels) -> tuple[Tensor, Tensor]:
        """Nodes to learn from long [n], and how many nodes each stands for float [n].

        All with a given label; of very many others a sample, the same in every round.
        """
        nodes = labels.known.any(0).nonzero().squeeze(1)
        given = self.task.given.known.any(0)[nodes]
        others = int((~given).sum())
        if others <= MOST:
            return nodes, self.inputs.new_ones(len(nodes))
        order = torch.randperm(others, generator=Streams((0,)).at("sample").generators()[0])[:MOST].sort().values
        drawn = nodes[~given][order.to(nodes.device)]
        times = self.inputs.new_full((len(drawn),), others / MOST)
        return torch.cat([nodes[given], drawn]), torch.cat([self.inputs.new_ones(int(given.sum())), times])

    def _logits(self, weights: Mapping[str, Tensor]) -> Tensor:
        weight, bias = weights["weight"], weights["bias"]
        runs, width, classes = weight.shape
        flat = self.inputs @ weight.transpose(0, 1).reshape(width, runs * classes)
        return flat.view(-1, runs, classes).transpose(0, 1) + bias

    def _minimum(self, inputs: Tensor, target: Tensor, start: Mapping[str, Tensor] | None) -> tuple[Tensor, Tensor]:
        """W [R, d, C] and b [R, 1, C] of least loss; target [C, R, n] holds beliefs times weights.

        Classes come first and nodes last, since a softmax over a short last axis is slow on a CPU.
        """
        (classes, runs, nodes), width = target.shape, inputs.shape[1]
        weight, bias = inputs.new_zeros(classes, runs, width), inputs.new_zeros(classes, runs)
        if start is not None:
            weight.copy_(start["weight"].permute(2, 0, 1))
            bias.copy_(start["bias"].squeeze(1).T)
        optimiser = torch.optim.LBFGS(
            [weight, bias],
            max_iter=self.trainer.iterations if start is None else self.trainer.again,
            history_size=10,
            tolerance_grad=1e-5,
            tolerance_change=1e-6,
            line_search_fn="strong_wolfe",
        )
        mass = target.sum(0)

        def loss() -> Tensor:
            logits = (weight.view(-1, width) @ inputs.T).view(classes, runs, nodes)
            logs = logits.add_(bias[..., None]).log_softmax(0)
            # a sum over runs keeps them independent
            value = self.trainer.ridge / 2 * weight.square().sum() - (target * logs).sum()
            rest = logs.exp_().mul_(mass).sub_(target)
            weight.grad = (rest.view(-1, nodes) @ inputs).view_as(weight) + self.trainer.ridge * weight
            bias.grad = rest.sum(-1)
            return value

        optimiser.step(loss)
        return weight.permute(1, 2, 0).contiguous(), bias.T.contiguous()[:, None]


@dataclass(frozen=True)
class _Principal:
    """What a linear model makes of a graph, made once for all of one kind."""

    model: PropagatedLinear
    place: torch.device

    def __call__(self, graph: Data) -> tuple[Tensor, Tensor, Tensor]:
        return self.model.principal(graph, Streams((0,)), self.place)


def _rows(x: Tensor, rows: str) -> Wide:
    """The features, sparse as scipy has them or dense as numpy, perhaps with rows of length one."""
    wide: Wide = to_scipy(x) if x.layout == torch.sparse_csr else x.cpu().numpy()
    if rows != "unit":
        return wide
    if x.layout == torch.sparse_csr:
        length = np.sqrt(np.asarray(wide.multiply(wide).sum(1))).ravel()
        scale: Wide = sp.diags_array((1 / np.maximum(length, TINY)).astype(np.float32))
        return sp.csr_array(scale @ wide)
    return wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), TINY)


def _rarity(x: Wide) -> Matrix:
    """√log((1 + N) / (1 + n)) of every column, which n of N rows have: [F]."""
    having = np.asarray((x != 0).sum(0)).ravel()
    rarity: Matrix = np.sqrt(np.log((1 + x.shape[0]) / (1 + having))).astype(np.float32)
    return rarity


def _times(wide: Wide, dense: Matrix) -> Matrix:
    product: Matrix = np.asarray(wide @ dense, dtype=np.float32)
    return product


def _side_by_side(parts: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs [N, d], directions [F, d] and means [1, d] of K models as those of one, its inputs divided by √K."""
    if len(parts) == 1:
        return parts[0]
    inputs, directions, means = (torch.cat(own, 1) for own in zip(*parts, strict=True))
    return inputs / len(parts) ** 0.5, directions, means


def _orthonormal(columns: Matrix) -> Matrix:
    """An orthonormal basis of the same span, by its Gram matrix, four times faster than QR; zero where it has none."""
    wide = columns.astype(np.float64)
    power, turn = np.linalg.eigh(wide.T @ wide)
    shrink = np.where(power > 1e-12 * power[-1], 1 / np.sqrt(np.maximum(power, 1e-300)), 0.0)
    basis: Matrix = columns @ (turn * shrink).astype(np.float32)
    return basis
