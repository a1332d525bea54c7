"""Section 3.3 and Appendix C: what the steps of the algorithm must touch, counted instead of timed."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import sparse
from torch.utils.flop_counter import FlopCounterMode

from tests.theory.definitions import Array, pagerank, planted, row_normalised, scale_free


def test_the_utility_depends_on_every_class_of_every_unlabelled_node() -> None:
    # the paper says that line 12 takes O(kC): no procedure that reads k rows can know U
    nodes, classes = 50, 4
    logits = torch.tensor(np.random.default_rng(0).standard_normal((nodes, classes)), requires_grad=True)
    probs = logits.softmax(1)
    pooled = probs.mean(0)
    worth = (probs * probs.log()).sum(1).mean() - (pooled * pooled.log()).sum()
    worth.backward()
    assert (logits.grad.abs() > 1e-9).all()


def products(adjacency: Array, sources: int, steps: int) -> int:
    """Entries of Ã that meet something else than zero when `sources` nodes are propagated for some steps."""
    step = row_normalised(adjacency) > 0
    reached = np.arange(len(adjacency)) < sources
    count = 0
    for _ in range(steps):
        count += int(step[:, reached].sum())
        reached = step[:, reached].any(1) | reached
    return count


def test_propagation_costs_edges_times_steps_whatever_the_number_of_sources() -> None:
    adjacency = planted(200, 3, 4.0, seed=0)[0]
    entries = int((adjacency > 0).sum()) + 200
    for sources in (1, 5, 50, 200):
        assert products(adjacency, sources, steps=10) <= 10 * entries
    assert products(adjacency, 5, steps=10) > 0.5 * 10 * entries  # a few sources soon reach most of the graph
    assert 10 * entries < 10 * 200 * 50  # H|V|k of line 11, for k = 50 of 200 nodes with 4 links each


def test_on_a_dense_graph_the_printed_cost_of_line_11_is_too_small() -> None:
    nodes, k, steps = 100, 5, 10
    dense = 1 - np.eye(nodes)
    assert products(dense, k, steps) > 5 * steps * nodes * k  # from the second step on all nodes are sources


def test_all_coalitions_share_one_propagation_of_the_candidates() -> None:
    # B coalitions cost B N k C after that: the total printed without H is right for a reason it does not give
    rng = np.random.default_rng(1)
    reach, logits = pagerank(row_normalised(scale_free(40, 2, seed=0)), 0.15), rng.standard_normal((40, 3))
    members = rng.random((25, 10)) < 0.5  # of candidates 0 … 9
    once = np.einsum("jk,bk,kc->bjc", reach[:, :10], members, logits[:10])
    for b, chosen in enumerate(members):
        alone = reach @ np.where(np.isin(np.arange(40), np.flatnonzero(chosen))[:, None], logits, 0)
        np.testing.assert_allclose(once[b], alone, atol=1e-12)


def test_values_from_b_coalitions_read_all_of_their_b_k_memberships() -> None:
    # the paper says that line 14 takes O(B): turning over any one membership changes some value
    rng = np.random.default_rng(2)
    members, worth = rng.random((8, 5)) < 0.5, rng.standard_normal(8)

    def values(who: np.ndarray) -> Array:
        return np.array([worth[column].mean() - worth[~column].mean() for column in who.T])

    usual = values(members)
    for b, i in np.ndindex(members.shape):
        other = members.copy()
        other[b, i] ^= True
        assert not np.allclose(values(other), usual)


@pytest.mark.parametrize("layers", [2, 3])
def test_training_has_terms_in_features_and_in_the_square_of_hidden_units(layers: int) -> None:
    # the paper says that line 2 takes O(L n_u n_e |V|²)
    def dense_products(hidden: int, features: int) -> int:
        sizes = [features, *[hidden] * (layers - 1), 3]
        x = torch.zeros(100, features)
        with FlopCounterMode(display=False) as counter:
            for one, other in pairwise(sizes):
                x = x @ torch.zeros(one, other)
        return counter.get_total_flops()

    assert dense_products(64, 2000) > 1.9 * dense_products(64, 1000)  # the first layer reads all features
    growth = dense_products(2048, 10) / dense_products(1024, 10)
    assert growth == pytest.approx(2 if layers == 2 else 4, rel=0.05)  # n_u² from the third layer on


@pytest.mark.parametrize("nodes", [2_000, 8_000])
def test_propagation_needs_memory_for_a_few_copies_of_the_logits_not_for_edges_times_nodes(nodes: int) -> None:
    classes, degree = 8, 10
    rng = np.random.default_rng(0)
    ends = rng.integers(nodes, size=(2, nodes * degree))
    step = sparse.csr_matrix((np.full(nodes * degree, 1 / degree), ends), shape=(nodes, nodes))
    logits = rng.standard_normal((nodes, classes))
    tracemalloc.start()
    state = logits
    for _ in range(5):
        state = 0.85 * (step @ state) + 0.15 * logits
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 6 * logits.nbytes
    assert peak < 8 * step.nnz * nodes * classes / 1000  # |E||V|C of the text
