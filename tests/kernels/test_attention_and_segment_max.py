"""The kernels for attention and neighbour maxima, against torch."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from bangs import kernels
from bangs.core.rng import Streams
from bangs.graphs.sparse import Pattern, Sparse, to_torch
from bangs.kernels.row_schedule import RowSchedule
from bangs.nn import attention
from bangs.nn.attention import SLOPE, Heads
from bangs.nn.models import GAT, GIN
from bangs.nn.segment_max import SparseNeighbourMax, segment_max
from bangs.nn.subgraphs import PreparedGraph
from tests.nn.stock import gradients, irregular_graph

pytest.importorskip("triton", reason="Triton comes with torch for CUDA")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("no GPU; TRITON_INTERPRET=1 runs the kernels without one", allow_module_level=True)

from bangs.kernels import attention as attention_kernels  # noqa: E402
from bangs.kernels import segment_max as segment_max_kernels  # noqa: E402

RUNS = 3
SHAPES = [(20, 30, 2, 7), (5, 90, 1, 130), (40, 40, 3, 1), (3, 200, 2, 16)]


def adjacency(n: int, m: int, density: float = 0.3) -> Sparse:
    """A pattern without empty rows, long and short ones among them, as `RUNS` runs share it."""
    matrix = sp.random_array((n, m), density=density, format="lil", dtype=np.float32, rng=1)
    matrix[:, 0] = 1
    matrix[0] = 1
    matrix = sp.csr_array(matrix)
    matrix.data[:] = np.random.default_rng(0).integers(1, 3, matrix.nnz)
    return Sparse.of(matrix).repeat(RUNS)


def to_device(*tensors: Tensor | None) -> list[Tensor | None]:
    return [None if tensor is None else tensor.to(DEVICE) for tensor in tensors]


def on_device(pattern: Pattern) -> RowSchedule:
    """The schedule of a pattern's rows, none of them divided."""
    schedule = pattern.whole_schedule
    return RowSchedule(*to_device(schedule.rows, schedule.row_order), schedule.long, None)


@pytest.mark.parametrize(("n", "m", "h", "d"), SHAPES)
@pytest.mark.parametrize("counted", [False, True])
def test_a_softmax_over_neighbours_and_its_gradient(n, m, h, d, counted):
    hop = adjacency(n, m)
    heads = Heads.of(hop if counted else hop.with_values(torch.ones_like(hop.values)), h)
    assert (heads.counts is not None) == counted
    source, target = 3 * torch.randn(RUNS * m * h), 3 * torch.randn(RUNS * n * h)
    source.requires_grad_(), target.requires_grad_()
    expected = attention.attention_weights(heads, source, target)
    grad_output = torch.randn_like(expected)
    to_source, to_target = torch.autograd.grad((expected * grad_output).sum(), (source, target))
    block, counts = heads.pattern.one_run, heads.one_run_counts
    schedule = on_device(block)
    assert (schedule.long > 0) == (m > 64), "some rows are long"
    cols, source, target, counts, grad_output = to_device(
        block.cols, source.detach(), target.detach(), counts, grad_output
    )
    weights = attention_kernels.softmax(schedule, cols, source, target, RUNS, SLOPE, counts)
    torch.testing.assert_close(weights.cpu(), expected.detach())
    change, sums = attention_kernels.softmax_back(schedule, cols, source, target, weights, grad_output, RUNS, SLOPE)
    torch.testing.assert_close(sums.cpu(), to_target, rtol=1e-4, atol=1e-5)
    back = Sparse(heads.pattern, change.cpu()).matmul_transposed(torch.ones(RUNS * n * h, 1)).flatten()
    torch.testing.assert_close(back, to_source, rtol=1e-4, atol=1e-5)


def test_scores_too_large_for_an_exponential_are_weighed():
    heads = Heads.of(adjacency(4, 5), 1)
    block = heads.pattern.one_run
    source, target, cols = to_device(torch.full((RUNS * 5,), 500.0), torch.full((RUNS * 4,), 500.0), block.cols)
    weights = attention_kernels.softmax(on_device(block), cols, source, target, RUNS, SLOPE)
    torch.testing.assert_close(attention._sums(weights.cpu(), heads.pattern.rows), torch.ones(RUNS * 4))


@pytest.mark.parametrize(("n", "m", "h", "d"), SHAPES)
def test_a_sampled_product_is_the_dense_one_at_its_entries(n, m, h, d):
    heads = Heads.of(adjacency(n, m), h)
    left, right = torch.randn(RUNS * n * h, d), torch.randn(RUNS * m * h, d)
    expected = (left @ right.T)[heads.pattern.row_index.long(), heads.pattern.cols.long()]
    parts = to_device(heads.pattern.one_run.row_index, heads.pattern.one_run.cols, left, right)
    torch.testing.assert_close(attention_kernels.sddmm(*parts, RUNS).cpu(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("n", "m", "h", "d"), SHAPES)
def test_the_largest_of_the_neighbours_and_its_gradient(n, m, h, d):
    pattern = adjacency(n, m).pattern
    x = torch.randn(RUNS * m, d).mul_(2).round_().requires_grad_()  # ties
    expected = segment_max(pattern, x)
    grad_output = torch.randn_like(expected)
    (back,) = torch.autograd.grad((expected * grad_output).sum(), x)
    block, transposed_block = pattern.one_run, pattern.one_run.transposed.pattern
    cols, transposed, x, grad_output = to_device(block.cols, transposed_block.cols, x.detach(), grad_output)
    maxima, share = segment_max_kernels.segment_max(on_device(block), cols, x, RUNS)
    torch.testing.assert_close(maxima.cpu(), expected.detach())
    ours = segment_max_kernels.segment_max_back(
        on_device(transposed_block), transposed, x, maxima, share * grad_output, RUNS
    )
    torch.testing.assert_close(ours.cpu(), back, rtol=1e-4, atol=1e-5)


def test_inactive_runs_are_skipped():
    active = torch.tensor([True, False, True], device=DEVICE)
    heads, segments = Heads.of(adjacency(20, 90), 2).pattern.one_run, adjacency(20, 90).pattern.one_run
    schedule, others = on_device(heads), on_device(segments)
    cols, named, row_index = to_device(heads.cols, segments.cols, heads.row_index)
    source, target = torch.randn(RUNS * 180, device=DEVICE), torch.randn(RUNS * 40, device=DEVICE)
    left, right = torch.randn(RUNS * 40, 5, device=DEVICE), torch.randn(RUNS * 180, 5, device=DEVICE)
    for make in (
        lambda which: attention_kernels.softmax(schedule, cols, source, target, RUNS, SLOPE, None, which),
        lambda which: attention_kernels.sddmm(row_index, cols, left, right, RUNS, which),
        lambda which: segment_max_kernels.segment_max(others, named, right[: RUNS * 90], RUNS, which)[0],
    ):
        some, all_ = (make(which).view(RUNS, -1) for which in (active, None))
        assert torch.equal(some[active], all_[active])


def test_the_largest_of_stored_values():
    """One column, so that a program takes many short rows."""
    hop = adjacency(12, 12)
    features = Sparse.of(sp.random_array((12, 30), density=0.2, format="csr", dtype=np.float32, rng=2)).repeat(RUNS)
    overlaid = SparseNeighbourMax.of(hop.pattern, features.pattern)
    values = torch.randn(RUNS, len(features.values) // RUNS)
    cols, stored = to_device(overlaid.segments.cols, values.reshape(-1, 1))
    actual = segment_max_kernels.segment_max(on_device(overlaid.segments), cols, stored, RUNS)[0].view(RUNS, -1)
    assert torch.equal(actual.cpu(), overlaid._segment_max(values, None))


@pytest.mark.parametrize("model", [GAT(hidden=5, heads=2, layers=3), GIN(hidden=6)])
@pytest.mark.parametrize("kind", ["dense", "sparse", "part"])
def test_a_network_by_our_kernels_gives_the_same_logits_and_gradients(model, kind, monkeypatch):
    graph = irregular_graph()
    if kind == "sparse":
        graph.x = to_torch(sp.csr_array(graph.x.numpy()))
    graph = graph.to(DEVICE)
    network = model.build(25, 3, Streams((1, 2, 3))).to(DEVICE)
    around = PreparedGraph.of(graph, 3, network.loops, network.normalise)
    subgraph = around.k_hop_subgraph(np.array([0, 1, 7, 30]), network.hops) if kind == "part" else around.whole
    subgraph = subgraph.only(torch.ones(3, dtype=torch.bool, device=DEVICE))
    results = []
    for served in (False, True):
        monkeypatch.setattr(kernels, "serves", lambda *tensors, served=served: served)
        logits = network(subgraph)
        results.append((logits, gradients(network, logits, torch.ones_like(logits).cumsum(1) / 10)))
    (logits, expected), (ours, grads) = results
    torch.testing.assert_close(ours, logits, rtol=1e-4, atol=1e-5)
    for name, gradient in grads.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-3, atol=1e-4)
