"""Linear models on propagated features: cheap to train, and accurate with few labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Task, one_hot
from bangs.errors import InvalidInput
from bangs.graphs.sparse import Sparse, adjacency, to_scipy
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network
from bangs.nn.models.base import Checked
from bangs.training.teacher import Teacher
from bangs.utils.setting_checks import check_choice, check_number

Matrix = npt.NDArray[np.float32]
FeatureMatrix = Any  # numpy [N, F], or a scipy matrix

MAX_SAMPLED_NODES = 20_000  # nodes without a given label that one fit learns from; more hardly change the weights
OVERSAMPLING = 16  # directions beyond `width`, which make the random projection exact enough
EPSILON = 1e-6


@dataclass(frozen=True)
class PropagatedLinear(Checked):
    """Logits = u((P X̃ V − m) / s) W + b, with a propagation P that has no weights.

    X̃ are the features, with rows of length one if `rows = "unit"`. P is the identity (`spread = "none"`), Â^reach
    (`"hops"`, SGC of Wu et al. 2019), or `reach` steps of H' = (1−alpha) Â H + alpha X̃ (`"pagerank"`, as in APPNP).
    `"scales"` has all three side by side, with two hops. Â is D^-½ (A + I) D^-½, or the random walk D^-1 (A + I) with
    `normalise = "row"`, where all neighbours count alike. With `columns = "idf"` a column that is not zero for n of N
    nodes is multiplied by √log((1 + N) / (1 + n)): inverse document frequency; with `"standard"` it is divided by its
    standard deviation. Only the first `width` principal
    directions of P X̃ are used; m and s are their mean and scale, and u makes rows of length one if `rows = "unit"`.
    The directions are computed once, from the fitted graph; W and b are learned.
    """

    spread: Literal["none", "hops", "pagerank", "scales"] = "pagerank"
    reach: int = 10
    alpha: float = 0.1
    width: int = 128
    rows: Literal["unit", "given"] = "unit"
    columns: Literal["given", "idf", "standard"] = "given"
    normalise: Literal["symmetric", "row"] = "symmetric"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, hint in get_type_hints(type(self)).items():
            if get_origin(hint) is Literal:
                check_choice(f"PropagatedLinear.{name}", getattr(self, name), get_args(hint))
        if self.reach < 0 or self.width < 1:
            raise InvalidInput(
                f"PropagatedLinear needs reach of 0 or more and width of 1 or more, got {self.reach} and {self.width}"
            )

    @property
    def parts(self) -> "tuple[PropagatedLinear, ...]":
        """The models whose inputs are concatenated: three for `"scales"`, else the model itself."""
        if self.spread != "scales":
            return (self,)
        near, far = replace(self, spread="hops", reach=2), replace(self, spread="pagerank")
        return (replace(self, spread="none", reach=0), near, far)

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Weights(len(rng), features, len(self.parts) * min(features, self.width), classes)

    def propagate(self, matrix: Sparse, x: Tensor) -> Tensor:
        """P x of dense columns x [N, d]."""
        if self.spread == "none" or self.reach == 0:
            return x
        h = x
        for _ in range(self.reach):  # PageRank: (1−α) Â h + α x = (1−α) (Â h + α/(1−α) x)
            h = matrix @ h if self.spread == "hops" else matrix.matmul(h, x, self.alpha / (1 - self.alpha))
            if self.spread == "pagerank":
                h = h * (1 - self.alpha)
        return h

    def logits(self, weights: Mapping[str, Tensor], graph: Data, device: torch.device) -> Tensor:
        """Logits [R, N, C] of R models with these weights, for every node of a graph."""
        weights = {name: value.to(device) for name, value in weights.items()}
        x, matrix, parts = _feature_matrix(graph.x, self.rows), self._adjacency(graph, device), self.parts
        basis, centre = (weights[name][0].chunk(len(parts), 1) for name in ("basis", "centre"))
        projections = []
        for part, directions, mean in zip(parts, basis, centre, strict=True):
            projected = torch.from_numpy(_product(x, directions.cpu().numpy())).to(device)
            projections.append((part._centred(part.propagate(matrix, projected), mean), directions, mean))
        return torch.matmul(_concatenated(projections)[0], weights["weight"]) + weights["bias"]

    def principal(self, graph: Data, rng: Streams, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """The inputs of W [N, d], the principal directions [F, d] and the mean [1, d] of a graph.

        Computed by a random projection and two power iterations (Halko, Martinsson & Tropp 2011).
        """
        if len(self.parts) > 1:
            return _concatenated([part.principal(graph, rng, device) for part in self.parts])
        x = _feature_matrix(graph.x, self.rows)
        column_weights = None
        if self.columns != "given":
            column_weights = _inverse_document_frequency(x) if self.columns == "idf" else _inverse_deviation(x)
            x = x * column_weights if isinstance(x, np.ndarray) else sp.csr_array(x.multiply(column_weights))
        matrix = self._adjacency(graph, device)

        def propagate(matrix: Sparse, dense: Matrix) -> Matrix:
            h = self.propagate(matrix, torch.from_numpy(np.ascontiguousarray(dense)).to(device))
            return np.asarray(h.cpu())

        features = x.shape[1]
        if features <= self.width:
            basis: Matrix = np.eye(features, dtype=np.float32)
            z = propagate(matrix, _product(x, basis))
        else:
            width = min(self.width + OVERSAMPLING, *x.shape)
            q = rng.at("projection").randn(features, width)[0].numpy()
            span = propagate(matrix, _product(x, q))
            for _ in range(2):
                q = _orthonormal(_product(x.T, propagate(matrix.T, _orthonormal(span))))
                span = propagate(matrix, _product(x, q))
            _, vectors = np.linalg.eigh((span.T @ span).astype(np.float64))
            leading = vectors[:, ::-1][:, : self.width].astype(np.float32)
            # a graph of fewer nodes has fewer directions; zeros fill up, so that shapes depend on the settings only
            padding = ((0, 0), (0, self.width - leading.shape[1]))
            basis, z = np.pad(q @ leading, padding), np.pad(span @ leading, padding)
        if column_weights is not None:
            basis = column_weights[:, None] * basis  # so that new nodes need no column weights
        centre = z.mean(0, keepdims=True)
        scale = 1 / max(float(np.sqrt(np.square(z - centre).sum(1).mean())), EPSILON)
        inputs, directions, mean = (torch.from_numpy(np.ascontiguousarray(a * scale)) for a in (z, basis, centre))
        return self._centred(inputs.to(device), mean.to(device)), directions, mean

    def _adjacency(self, graph: Data, device: torch.device) -> Sparse:
        return Sparse.of(adjacency(graph, loops=1.0, normalise=self.normalise), device)

    def _centred(self, z: Tensor, mean: Tensor) -> Tensor:
        z = z - mean
        return z / z.norm(dim=1, keepdim=True).clamp_min(EPSILON) if self.rows == "unit" else z


class _Weights(Network):
    """All weights of R linear models, which share directions and mean; see `PropagatedLinear.logits`."""

    def __init__(self, runs: int, features: int, width: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(runs, width, classes))
        self.bias = nn.Parameter(torch.zeros(runs, 1, classes))
        self.basis = nn.Parameter(torch.zeros(1, features, width))
        self.centre = nn.Parameter(torch.zeros(1, 1, width))


@dataclass(frozen=True)
class LinearTrainer:
    """Multinomial logistic regression by at most `iterations` steps of L-BFGS; used in place of a `Trainer`.

    The loss of a run is the weighted mean cross-entropy over its labelled nodes plus ridge/2 · |W|².
    """

    model: PropagatedLinear = field(default_factory=PropagatedLinear)
    ridge: float = 1e-3
    iterations: int = 40
    again: int = 15  # iterations of a warm start, from the weights of the last round

    batches = None  # read where a `Trainer` is expected; a linear model trains without batches

    def __post_init__(self) -> None:
        check_number("LinearTrainer.ridge", self.ridge, within="(0, inf)")

    def prepare(self, task: Task) -> "LinearLearner":
        return LinearLearner(self, task)


class LinearLearner:
    """A task prepared for logistic regression: its propagated features."""

    def __init__(self, trainer: LinearTrainer, task: Task):
        self.trainer, self.task = trainer, task
        parts = [task.cached(_Principal(part, task.device)) for part in trainer.model.parts]
        self.inputs, basis, centre = _concatenated(parts)
        self.shared = {"basis": basis[None], "centre": centre[None]}  # the weights that all runs share

    def fit(
        self, labels: Labels, rng: Streams, *, start: dict[str, Tensor] | None = None, **corrections: Any
    ) -> Teacher:
        """R models of the labels [R, N]; a warm start only saves time, since the loss has one minimum."""
        if any(part is not None for part in corrections.values()):
            raise InvalidInput("a linear model corrects no loss and keeps no early weights; choose another method")
        nodes, node_weight = self._sampled(labels)
        inputs, classes = self.inputs[nodes], self.task.classes
        belief = labels.belief[:, nodes] if labels.belief is not None else one_hot(labels.target[:, nodes], classes)
        share = labels.weight[:, nodes] * node_weight / labels.known.sum(1, keepdim=True)
        target = (belief * share[..., None]).permute(2, 0, 1).contiguous()  # [C, R, n]
        weights = self._minimise(inputs, target, start)
        logits = self._logits(weights)
        held = self.task.held
        correct = ((logits.argmax(-1) == self.task.validation) & held).sum(1)
        finite = logits.isfinite().flatten(1).all(1)
        epochs = torch.full_like(correct, self.trainer.iterations)
        return Teacher(self, weights, correct.double() / held.sum(1).clamp_min(1), epochs, finite)  # type: ignore[arg-type]

    def predict(self, weights: Mapping[str, Tensor], graph: Any, masks: DropoutMasks | None = None) -> Prediction:
        """Logits [R, N, C] under the given weights."""
        if graph is not self.task.graph or masks is not None:
            raise InvalidInput("a linear model predicts the graph it was fitted on only; choose a method without views")
        return Prediction(self._logits(weights))

    def embed(self, weights: Mapping[str, Tensor], graph: Data) -> Tensor:
        """The propagated features [R, N, d]."""
        return self.inputs.expand(self.task.runs, -1, -1)

    def _sampled(self, labels: Labels) -> tuple[Tensor, Tensor]:
        """Nodes to learn from long [n], and how many nodes each represents float [n].

        All nodes with a given label, and at most `MAX_SAMPLED_NODES` of the others, the same in every round.
        """
        nodes = labels.known.any(0).nonzero().squeeze(1)
        given = self.task.given.known.any(0)[nodes]
        others = int((~given).sum())
        if others <= MAX_SAMPLED_NODES:
            return nodes, self.inputs.new_ones(len(nodes))
        generator = Streams((0,)).at("sample").generators()[0]
        order = torch.randperm(others, generator=generator)[:MAX_SAMPLED_NODES].sort().values
        sample = nodes[~given][order.to(nodes.device)]
        represented = self.inputs.new_full((len(sample),), others / MAX_SAMPLED_NODES)
        return torch.cat([nodes[given], sample]), torch.cat([self.inputs.new_ones(int(given.sum())), represented])

    def _logits(self, weights: Mapping[str, Tensor]) -> Tensor:
        weight, bias = weights["weight"], weights["bias"]
        runs, width, classes = weight.shape
        flat = self.inputs @ weight.transpose(0, 1).reshape(width, runs * classes)
        return flat.view(-1, runs, classes).transpose(0, 1) + bias

    def _minimise(self, inputs: Tensor, target: Tensor, start: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
        """W [R, d, C] and b [R, 1, C] of least loss; target [C, R, n] holds label distributions times weights.

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
        total = target.sum(0)

        def loss() -> Tensor:
            logits = (weight.view(-1, width) @ inputs.T).view(classes, runs, nodes)
            log_probs = logits.add_(bias[..., None]).log_softmax(0)
            # a sum over runs keeps them independent
            value = self.trainer.ridge / 2 * weight.square().sum() - (target * log_probs).sum()
            residual = log_probs.exp_().mul_(total).sub_(target)
            weight.grad = (residual.view(-1, nodes) @ inputs).view_as(weight) + self.trainer.ridge * weight
            bias.grad = residual.sum(-1)
            return value

        optimiser.step(loss)
        return {"weight": weight.permute(1, 2, 0).contiguous(), "bias": bias.T.contiguous()[:, None]}


@dataclass(frozen=True)
class _Principal:
    """`PropagatedLinear.principal` as a key of a task's cache: models that differ in their ridge only share it."""

    model: PropagatedLinear
    device: torch.device

    def __call__(self, graph: Data) -> tuple[Tensor, Tensor, Tensor]:
        return self.model.principal(graph, Streams((0,)), self.device)


def _feature_matrix(x: Tensor, rows: str) -> FeatureMatrix:
    """The features as a scipy matrix if sparse, else as a numpy array; rows have length one if `rows` is "unit"."""
    matrix: FeatureMatrix = to_scipy(x) if x.layout == torch.sparse_csr else x.cpu().numpy()
    if rows != "unit":
        return matrix
    if isinstance(matrix, np.ndarray):
        return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), EPSILON)
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1))).ravel()
    scale: FeatureMatrix = sp.diags_array((1 / np.maximum(length, EPSILON)).astype(np.float32))
    return sp.csr_array(scale @ matrix)


def _inverse_deviation(x: FeatureMatrix) -> Matrix:
    """One over the standard deviation of every column; 1 for constant columns: [F]."""
    deviation = np.asarray((x if isinstance(x, np.ndarray) else x.toarray()).std(0))
    return (1 / np.where(deviation > EPSILON, deviation, 1.0)).astype(np.float32)


def _inverse_document_frequency(x: FeatureMatrix) -> Matrix:
    """√log((1 + N) / (1 + n)) of every column, of which n of N rows are not zero: [F]."""
    nonzero = np.asarray((x != 0).sum(0)).ravel()
    return np.asarray(np.sqrt(np.log((1 + x.shape[0]) / (1 + nonzero))), dtype=np.float32)


def _product(x: FeatureMatrix, dense: Matrix) -> Matrix:
    return np.asarray(x @ dense, dtype=np.float32)


def _concatenated(parts: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs [N, d], directions [F, d] and means [1, d] of K models as those of one, its inputs divided by √K."""
    if len(parts) == 1:
        return parts[0]
    inputs, directions, means = (torch.cat(tensors, 1) for tensors in zip(*parts, strict=True))
    return inputs / len(parts) ** 0.5, directions, means


def _orthonormal(columns: Matrix) -> Matrix:
    """An orthonormal basis of the same span, zero beyond its rank; the Gram matrix is 4 times faster than QR."""
    exact = columns.astype(np.float64)
    eigenvalues, eigenvectors = np.linalg.eigh(exact.T @ exact)
    positive = eigenvalues > 1e-12 * eigenvalues[-1]
    inverse_root = np.where(positive, 1 / np.sqrt(np.maximum(eigenvalues, 1e-300)), 0.0)
    return np.asarray(columns @ (eigenvectors * inverse_root).astype(np.float32))
