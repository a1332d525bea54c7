"""A GPU gives the same bits twice, and to a run that was stopped: every model and method, with our kernels and without.

A node that all others are linked with makes rows long enough to be cut, whose pieces any other order would add up
otherwise.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from bangs import kernels
from bangs.calibration.calibrators import CALIBRATORS
from bangs.core.rng import Streams
from bangs.core.types import Prediction
from bangs.experiments.experiment import Experiment
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.sparse import Sparse
from bangs.graphs.splits import mark, per_class
from bangs.nn.attention import Heads, aggregate, attention_weights
from bangs.nn.models import MODELS
from bangs.nn.segment_max import segment_max
from bangs.runs import RunFolder
from bangs.selftraining.loop import State
from bangs.selftraining.methods import METHODS

DEVICE = "cuda"
RUNS = 2
TIMES = 3  # that a single operation is repeated

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]


class StopEarly(Exception):
    """The end of a run that an observer calls."""


@pytest.fixture(params=["kernels", "no kernels"])
def kernels_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Whether our kernels are used; without them as where BANGS_KERNELS=0 is set."""
    wanted = request.param == "kernels"
    monkeypatch.setenv("BANGS_KERNELS", "1" if wanted else "0")
    kernels.ready.cache_clear()
    if kernels.ready() != wanted:
        pytest.skip("our kernels cannot be built here")
    yield wanted
    kernels.ready.cache_clear()


@cache
def large_graph(*, dense: bool = False) -> Data:
    """A citation network of 2,400 nodes whose first is linked with everyone; 40 labelled, 200 for validation."""
    data = citation(nodes=2400, classes=4, features=120, seed=1, mean_degree=6.0, signal=0.6)
    others = torch.arange(1, 2400)
    star = torch.stack([torch.zeros_like(others), others])
    data.edge_index = coalesce(torch.cat([data.edge_index, star, star.flip(0)], dim=1))
    data = mark(data, per_class(data.y, 10, 200, 500, [0]))
    data.x = data.x.to_dense() if dense else data.x
    return data


def experiment(**settings: Any) -> Experiment:
    """Two rounds of few epochs, of which some runs rest during the last."""
    common: dict[str, Any] = {"method": "bangs", "rounds": 2, "k": 20, "candidates": 40, "seeds": (3, 7)}
    return Experiment(dataset="citation", **{**common, "changes": {"epochs": 40, "patience": 6}, **settings})


def bits_of_rounds(folder: Path, of: Experiment, data: Data, until: int | None = None) -> dict[int, dict[str, str]]:
    """The bits of every round that a run goes through in a folder, from where it stands to the end or `until`."""
    bits_by_round = {}

    def look(state: State, row: dict[str, Any]) -> None:
        bits_by_round[state.index] = bits(state)
        if state.index == until:
            raise StopEarly

    expected = nullcontext() if until is None else pytest.raises(StopEarly)
    with RunFolder.create_or_resume(folder, of.config(), resume=True) as run_folder, expected:
        of.run(data=data, device=DEVICE, run_folder=run_folder, observers=[look])
    return bits_by_round


def bits(state: State) -> dict[str, str]:
    """A checksum of everything in a state that anything later depends on, by its name."""
    held = {name: getattr(state.labels, name) for name in ("target", "weight", "adopted_round")}
    held |= {f"student {name}": value for name, value in state.student.weights.items()}
    held |= {"logits": state.prediction.logits, "validation": state.validation, "best round": state.best_round}
    if state.adoption is not None:
        held |= {"score": state.adoption.ranking.score, "confidence": state.adoption.confidence}
    return {name: hashlib.sha256(value.cpu().numpy().tobytes()).hexdigest()[:12] for name, value in held.items()}


def assert_same_when_stopped(folder: Path, of: Experiment, data: Data) -> None:
    """Two runs are equal, the second of which is stopped after round 1 and taken up again."""
    whole = bits_of_rounds(folder / "whole", of, data)
    begun = bits_of_rounds(folder / "stopped", of, data, until=1)
    rest = bits_of_rounds(folder / "stopped", of, data)
    assert list(rest) == [2], "what had been done was not done again"
    assert begun | rest == whole


@pytest.mark.parametrize("model", MODELS)
def test_every_model_learns_the_same_bits_again_and_when_stopped(model: str, kernels_on: bool, tmp_path: Path) -> None:
    assert_same_when_stopped(tmp_path, experiment(model=model, method="confidence"), large_graph())


DRAWN = {"batch_size": 16, "fanout": (5, 5), "changes": {"epochs": 4}}  # step by step, so few


@pytest.mark.parametrize("settings", [{"preset": "paper"}, DRAWN], ids=["ahead", "drawn"])
def test_so_does_a_gcn_with_its_first_hop_taken_before_or_its_neighbours_drawn(
    settings: dict[str, Any], kernels_on: bool, tmp_path: Path
) -> None:
    assert_same_when_stopped(tmp_path, experiment(method="confidence", **settings), large_graph(dense=True))


@pytest.mark.parametrize("method", [name for name in METHODS if name != "raw"])
def test_every_method_gives_the_same_bits_again_and_when_stopped(method: str, kernels_on: bool, tmp_path: Path) -> None:
    assert_same_when_stopped(tmp_path, experiment(method=method), large_graph())


@pytest.mark.parametrize("name", CALIBRATORS)
def test_every_calibrator_gives_the_same_bits_again(name: str, kernels_on: bool) -> None:
    task = experiment().task(large_graph())
    task = task.to(DEVICE)
    prediction = Prediction(3 * Streams((1, 2)).at("logits").randn(task.nodes, task.classes).to(DEVICE))
    assert_same(lambda: [CALIBRATORS[name]()(prediction, task).logits])


def irregular_matrix() -> Sparse:
    """A square matrix of 6,000 rows, the first full and some longer than others, for two runs."""
    size, random = 6000, np.random.default_rng(0)
    ends = [np.minimum(random.pareto(1.0, 60_000) * 20, size - 1).astype(int), random.integers(0, size, 60_000)]
    lines = [np.concatenate([*pair, np.arange(size)]) for pair in (ends, ends[::-1])]
    star = [np.concatenate([lines[0], np.zeros(size, int)]), np.concatenate([lines[1], np.arange(size)])]
    matrix = sp.csr_array((np.ones(len(star[0]), np.float32), tuple(star)), shape=(size, size))
    matrix.sum_duplicates()
    matrix.data[:] = random.random(matrix.nnz)
    return Sparse.of(matrix, DEVICE).repeat(RUNS)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def assert_same(act: Callable[[], list[Tensor]]) -> None:
    first = act()
    for _ in range(TIMES):
        assert all(torch.equal(one, other) for one, other in zip(first, act(), strict=True))


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 7, 64])
def test_products_are_summed_in_one_order(width: int, kind: torch.dtype, kernels_on: bool) -> None:
    matrix, dense = irregular_matrix(), drawn(12_000, width).to(kind)
    matrix = matrix.with_values(matrix.values.to(kind))
    assert_same(lambda: [matrix.matmul(dense), matrix.matmul_transposed(dense)])


def test_gradients_of_attention_are_summed_in_one_order(kernels_on: bool) -> None:
    heads = Heads.of(irregular_matrix(), 2)
    parts = [drawn(RUNS, 6000, 2, seed=1), drawn(RUNS, 6000, 2, seed=2), drawn(RUNS, 6000, 2, 8, seed=3)]
    grad_output = drawn(RUNS, 6000, 2, 8, seed=4)

    def act() -> list[Tensor]:
        source, target, z = (part.clone().requires_grad_() for part in parts)
        segments = aggregate(heads, attention_weights(heads, source, target), z)
        return [segments.detach(), *torch.autograd.grad(segments, (source, target, z), grad_output)]

    assert_same(act)


def test_gradients_of_maxima_are_summed_in_one_order(kernels_on: bool) -> None:
    segments, lines, grad_output = irregular_matrix().pattern, drawn(12_000, 16), drawn(12_000, 16, seed=1)

    def act() -> list[Tensor]:
        x = lines.clone().requires_grad_()
        found = segment_max(segments, x)
        return [found.detach(), *torch.autograd.grad(found, x, grad_output)]

    assert_same(act)
