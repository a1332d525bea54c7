"""Graph calibrators: a temperature for every node, learned from its neighbourhood.

CaGCN and GATS start from temperature scaling, so that the scale of the logits does not matter, and learn how much every
node departs from it, as in `crossfit`. All factors are positive, so labels are kept.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional

from bangs.calibration import logit_scaling
from bangs.calibration.crossfit import Crossfit
from bangs.calibration.logit_scaling import ValidationSample, check_prior, divide_logits
from bangs.core.rng import Streams
from bangs.core.types import Prediction, Task
from bangs.graphs.neighbours import ragged_index
from bangs.graphs.sparse import Pattern, Sparse, adjacency, row_pointers
from bangs.utils.setting_checks import check_integer, check_number

GIVEN, ADJACENT, DISTANT = 0, 1, 2  # distance from a given label


@dataclass(frozen=True)
class CaGCN:
    """Logits t_i · z_i with t_i = log(1.1 + (e − 1.1)·e^{s_i}), s = GCN(z; A) (Wang et al., 2021). Keeps every label.

    The GCN has two layers, C → `hidden` → 1, over D^-½(A + I)D^-½; the loss is the cross-entropy plus `margin` times a
    term that increases the gap between the two largest probabilities of a correct node and decreases that of a wrong
    one. The term is not a proper score; 0.5 is the published setting, `margin=0` leaves the term out.

    Departures from the published code: z comes from temperature scaling, and enters the GCN with unit mean square;
    t = 1 at s = 0, where the last layer starts (published: 0.74); cross-validated stopping in place of dropout.
    """

    hidden: int = 16
    margin: float = 0.5
    fit: Crossfit = field(default_factory=Crossfit)
    prior: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("CaGCN.hidden", self.hidden, least=1)
        check_number("CaGCN.margin", self.margin, within="[0, inf)")
        check_prior(type(self).__name__, self.prior)

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        return divide_logits(prediction, self.temperatures(prediction, task))

    def temperatures(self, prediction: Prediction, task: Task) -> Tensor:
        """The temperature of every node: float64 [R, N]."""
        temperature, scaled, sample = _start(prediction, task, self.prior)
        rng = Streams((self.seed,) * task.runs).at("cagcn")
        device = task.device
        start = [
            _glorot(rng.at("layer"), task.classes, self.hidden, device),
            torch.zeros(task.runs, self.hidden, dtype=torch.float64, device=device),
            torch.zeros(task.runs, self.hidden, dtype=torch.float64, device=device),
            torch.zeros(task.runs, dtype=torch.float64, device=device),
        ]
        matrix = adjacency(task.graph, 1.0, "symmetric")
        smooth = _propagate(_float64_sparse(matrix, device), scaled.logits)
        smooth = smooth / smooth.square().mean((1, 2), keepdim=True).sqrt().clamp(min=1e-12)
        factor = _Convolution.of(matrix, smooth, sample.nodes)
        learned = self.fit(factor, start, sample, _shuffle(rng, sample, task), self.margin)
        all_nodes = torch.arange(task.nodes, device=device).expand(task.runs, -1)
        return temperature / _Convolution.of(matrix, smooth, all_nodes)(learned)


@dataclass(frozen=True)
class GATS:
    """Logits z_i / T_i with a temperature from attention over neighbours (Hsu et al., 2022). Keeps every label.

    T_i = T₀ + (1/H) Σ_h softplus( Σ_{j ∈ N(i) ∪ i} a_ij γ_j τ_j^h + ω δ_i ), where τ_j = Θ · sort(z_j scaled to [0, 1])
    is the shape of node j's prediction, γ_j = γ_given, γ_beside or 1 for a node with a given label, a neighbour of
    one, or any other, a_ij is the softmax over j of LeakyReLU(⟨z_i, z_j⟩ / (γ_i γ_j)), and δ_i is how much the
    confidence of i exceeds that of its neighbourhood in the mean. Learned per run: Θ ∈ R^{H×C}, ω, T₀ and both γ.

    Departures from the published code: z comes from temperature scaling; distances to the given labels are true ones
    (as published with BANGS they are all infinite); γ = e^g and T₀ = (1 − log 2)·e^t are positive, start with Θ ≈ 0 at
    T_i ≈ 1, and are pulled there by weight decay (published: towards 0, where γ divides).
    """

    heads: int = 8
    fit: Crossfit = field(default_factory=Crossfit)
    prior: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("GATS.heads", self.heads, least=1)
        check_prior(type(self).__name__, self.prior)

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        return divide_logits(prediction, self.temperatures(prediction, task))

    def temperatures(self, prediction: Prediction, task: Task) -> Tensor:
        """The temperature of every node: float64 [R, N]."""
        temperature, scaled, sample = _start(prediction, task, self.prior)
        rng = Streams((self.seed,) * task.runs).at("gats")
        device = task.device
        start = [
            # small, so that epoch 0 is temperature scaling; not zero, or all heads would stay equal
            0.01 * _glorot(rng.at("shape"), task.classes, self.heads, device),
            torch.zeros(task.runs, dtype=torch.float64, device=device),
            torch.zeros(task.runs, 2, dtype=torch.float64, device=device),
            torch.zeros(task.runs, dtype=torch.float64, device=device),
        ]
        pattern = adjacency(task.graph, 1.0, "none")
        distance = hops(pattern, task.given.known)
        attention = _Attention.of(pattern, scaled, distance, sample.nodes)
        learned = self.fit(lambda parameters: 1 / attention(parameters), start, sample, _shuffle(rng, sample, task))
        all_nodes = torch.arange(task.nodes, device=device)[None]
        factors = []
        for run in range(task.runs):  # one after the other, since the edges of all runs may not fit into memory
            attention = _Attention.of(pattern, Prediction(scaled.logits[[run]]), distance[[run]], all_nodes)
            factors.append(attention([part[[run]] for part in learned]))
        return temperature * torch.cat(factors)


def hops(pattern: "sp.csr_array[Any]", known: Tensor) -> Tensor:
    """Distance of every node from the nearest known one, cut off at 2: long [R, N] from bool [R, N]."""
    links = sp.csr_array((np.ones_like(pattern.data), pattern.indices, pattern.indptr), shape=pattern.shape)
    touched = torch.as_tensor(links @ known.T.cpu().numpy().astype(np.float32) > 0, device=known.device).T
    return torch.where(known, GIVEN, torch.where(touched, ADJACENT, DISTANT))


@dataclass(frozen=True, eq=False)
class _Convolution:
    """The factors of some nodes under CaGCN's network, computed from the nodes they depend on alone."""

    smooth: Tensor  # float64 [R, n, C], the logits after one propagation, of the input nodes
    matrix: Sparse  # [m, n], from them to the output nodes of any run
    rows: Tensor  # long [R, V], rows of the matrix

    @classmethod
    def of(cls, matrix: "sp.csr_array[Any]", smooth: Tensor, nodes: Tensor) -> "_Convolution":
        """For nodes long [R, V], from the adjacency [N, N] and the smooth logits of all nodes [R, N, C]."""
        outputs, rows = nodes.unique(return_inverse=True)
        into = matrix[outputs.cpu().numpy()]
        inputs = np.unique(into.indices)
        index = torch.as_tensor(inputs, dtype=torch.long, device=nodes.device)
        return cls(smooth[:, index], _float64_sparse(into[:, inputs], nodes.device), rows)

    def __call__(self, parameters: Sequence[Tensor]) -> Tensor:
        """Factors [G, V] for the parameters of G models, a multiple of R."""
        weight, bias, head, offset = parameters
        models, runs = len(weight), len(self.smooth)
        smooth = self.smooth.repeat(models // runs, 1, 1)
        hidden = torch.baddbmm(bias[:, None], smooth, weight).relu()
        propagated = (self.matrix @ (hidden @ head[..., None]).squeeze(-1).T).T + offset[:, None]
        s = propagated.gather(1, self.rows.repeat(models // runs, 1))
        return torch.log(1.1 + (math.e - 1.1) * s.exp())


@dataclass(frozen=True, eq=False)
class _Attention:
    """The temperatures of some nodes under GATS, over the M edges that end in them, of all runs in one list."""

    agreement: Tensor  # float64 [M, 1], ⟨z_i, z_j⟩
    source: Tensor  # float64 [M, 3R], which γ of which run the edge's source has
    target: Tensor  # float64 [M, 3R], the same of its target
    shape: Tensor  # float64 [M, C], the sorted prediction of the source
    total: Sparse  # [R·V, M], sums over the edges into a node
    degree: Tensor  # long [R·V], how many these are
    group: Tensor  # long [M], the node each edge ends in
    excess: Tensor  # float64 [R, V], δ

    @classmethod
    def of(cls, pattern: "sp.csr_array[Any]", prediction: Prediction, distance: Tensor, nodes: Tensor) -> "_Attention":
        """For nodes long [R, V]; `distance` long [R, N] is that of all nodes from a given label."""
        runs, width = nodes.shape
        device = nodes.device
        pointers = torch.as_tensor(pattern.indptr.astype(np.int64), device=device)
        degree = pointers.diff()[nodes].flatten()
        group = torch.repeat_interleave(torch.arange(runs * width, device=device), degree)
        edge = ragged_index(pointers[:-1][nodes].flatten(), degree)
        j = torch.as_tensor(pattern.indices.astype(np.int64), device=device)[edge]
        i = nodes.flatten()[group]
        run = group // width
        each = torch.arange(len(edge), dtype=torch.int32, device=device)
        sums = Pattern(row_pointers(degree, torch.int32), each, (len(degree), len(edge)))
        total = Sparse(sums, torch.ones(len(edge), dtype=torch.float64, device=device))
        logits, confidence = prediction.logits, prediction.confidence
        low, high = logits.amin(-1, keepdim=True), logits.amax(-1, keepdim=True)
        shape = ((logits - low) / (high - low).clamp(min=1e-12)).sort(-1).values
        difference = (confidence[run, i] - confidence[run, j])[:, None]
        return cls(
            agreement=(logits[run, i] * logits[run, j]).sum(-1, keepdim=True),
            source=functional.one_hot(3 * run + distance[run, j], 3 * runs).double(),
            target=functional.one_hot(3 * run + distance[run, i], 3 * runs).double(),
            shape=shape[run, j],
            total=total,
            degree=degree,
            group=group,
            excess=((total @ difference).squeeze(1) / degree).view(runs, width),
        )

    def __call__(self, parameters: Sequence[Tensor]) -> Tensor:
        """Temperatures [G, V] for the parameters of G models, a multiple of R."""
        theta, omega, trust, least = parameters
        runs, width = self.excess.shape
        models, classes = len(theta), self.shape.shape[1]
        fits = models // runs
        logs = functional.pad(trust, (0, 1)).view(fits, runs * 3).T  # γ = 1 for nodes farther away
        source = self.source @ logs  # [M, F]
        level = functional.leaky_relu(self.agreement * torch.exp(-source - self.target @ logs), 0.2)
        highest = torch.segment_reduce(level.detach(), "max", lengths=self.degree, axis=0)
        weight = (level - highest[self.group]).exp()
        message = (weight * source.exp())[..., None] * self.shape[:, None]
        sums = self.total @ torch.cat([message, weight[..., None]], -1).flatten(1)
        sums = sums.view(runs, width, fits, classes + 1).permute(2, 0, 1, 3).reshape(models, width, classes + 1)
        attended = sums[..., :-1] / sums[..., -1:]
        inner = attended @ theta + (omega[:, None] * self.excess.repeat(fits, 1))[..., None]
        return functional.softplus(inner).mean(-1) + (1 - math.log(2)) * least.exp()[:, None]


def _start(prediction: Prediction, task: Task, prior: float) -> tuple[Tensor, Prediction, ValidationSample]:
    """Temperatures [R, 1], the prediction scaled by them, and its validation nodes, in float64."""
    sample = ValidationSample.of(prediction, task, prior)
    temperature = logit_scaling.temperature(sample.logits, sample.target)[:, None]
    scaled = Prediction(prediction.logits.double() / temperature[..., None])
    return temperature, scaled, ValidationSample.of(scaled, task, prior)


def _float64_sparse(matrix: "sp.csr_array[Any]", device: torch.device) -> Sparse:
    """The matrix with float64 values: hundreds of steps of Adam would make rounding in float32 visible."""
    sparse = Sparse.of(matrix, device)
    return sparse.with_values(sparse.values.double())


def _glorot(rng: Streams, rows: int, columns: int, device: torch.device) -> Tensor:
    """Uniform in ±√(6 / (rows + columns)): float64 [R, rows, columns]."""
    return math.sqrt(6 / (rows + columns)) * (2 * rng.rand(rows, columns).double().to(device) - 1)


def _shuffle(rng: Streams, sample: ValidationSample, task: Task) -> Tensor:
    """A random number for every validation node: float [R, V]; drawn for all nodes, so that it depends on no other."""
    return rng.at("folds").rand(task.nodes).to(task.device).gather(1, sample.nodes)


def _propagate(matrix: Sparse, value: Tensor) -> Tensor:
    """The product of one matrix with every run's values: [R, N, C] from [R, N, C]."""
    runs, nodes, classes = value.shape
    product = matrix @ value.transpose(0, 1).reshape(nodes, runs * classes)
    return product.view(nodes, runs, classes).transpose(0, 1).contiguous()
