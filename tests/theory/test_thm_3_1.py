"""Def. 3.1 and Thm 3.1: whose features a node's output depends on, against the law of a random walk."""

from itertools import product

import numpy as np
import pytest
import torch
from torch.func import jacrev, vmap

from tests.theory.definitions import normalised, row_normalised, scale_free, symmetric, total_variation
from tests.theory.networks import CLASSES, FEATURES, NODES, influence, inputs, linear, network, relu, weights


@pytest.mark.parametrize("layers", [1, 2, 3, 5])
def test_in_a_linear_network_influence_is_exactly_the_walk_from_the_influenced_node(layers: int) -> None:
    step = row_normalised(scale_free(NODES, 2, seed=layers))
    jacobian = jacrev(network(step, weights(layers, 0), linear))(inputs(1, 0)[0])
    walk = np.linalg.matrix_power(step, layers)  # row j: the walk starts at j
    np.testing.assert_allclose(influence(jacobian), walk, atol=1e-12)


def test_the_direction_written_in_the_proof_gives_another_law() -> None:
    walk = np.linalg.matrix_power(row_normalised(scale_free(60, 2, seed=0)), 2)
    started_at_the_source = normalised(walk.T)
    assert total_variation(started_at_the_source, walk).mean() > 0.1


def test_relu_with_two_layers_and_centred_inputs_is_the_walk_exactly() -> None:
    # x and −x open complementary gates, so that the two Jacobians add up to the linear one
    step = row_normalised(scale_free(NODES, 2, seed=1))
    run, x = network(step, weights(2, 1), relu), inputs(1, 1)[0]
    expected = (jacrev(run)(x) + jacrev(run)(-x)) / 2
    np.testing.assert_allclose(influence(expected), step @ step, atol=1e-12)


def test_gates_that_open_independently_with_one_probability_leave_the_walk_as_it_is() -> None:
    nodes, hidden, open_share = 3, 2, 0.3
    step = row_normalised(scale_free(nodes, 1, seed=0))
    layers, x = weights(3, 2, hidden), inputs(1, 2, nodes)[0]
    expected = torch.zeros(nodes, CLASSES, nodes, FEATURES, dtype=torch.float64)
    for gates in product((0.0, 1.0), repeat=2 * nodes * hidden):
        opened = torch.tensor(gates, dtype=torch.float64).view(2, nodes, hidden)
        chance = open_share ** sum(gates) * (1 - open_share) ** (len(gates) - sum(gates))
        first = torch.einsum("jm,mh->jhm", torch.tensor(step), opened[0])  # Jacobian, layer by layer
        first = torch.einsum("jhm,mi,dh,hg->jgid", first, torch.tensor(step), layers[0], layers[1])
        second = torch.einsum("jm,mg,mgid,gc->jcid", torch.tensor(step), opened[1], first, layers[2])
        expected += chance * second
    free = jacrev(network(step, layers, linear))(x)
    torch.testing.assert_close(expected, open_share**2 * free)
    np.testing.assert_allclose(influence(expected), np.linalg.matrix_power(step, 3), atol=1e-12)


@pytest.mark.parametrize("layers", [3, 4])
def test_relu_in_deeper_networks_is_near_the_walk_in_expectation_but_not_for_one_input(layers: int) -> None:
    step = row_normalised(scale_free(NODES, 2, seed=2))
    walk = np.linalg.matrix_power(step, layers)
    jacobians = vmap(jacrev(network(step, weights(layers, 3, hidden=16), relu)))(inputs(400, 3))
    assert total_variation(influence(jacobians.mean(0)), walk).max() < 0.03
    alone = [total_variation(influence(one), walk).mean() for one in jacobians[:20]]
    assert np.mean(alone) > 0.04


def test_gates_that_know_the_node_break_the_assumption_and_the_theorem() -> None:
    # features far apart in two halves of the graph: which gates open depends on the node, in every draw
    step = row_normalised(scale_free(NODES, 2, seed=3))
    side = np.where(np.arange(NODES) % 2, 4.0, -4.0)[:, None]
    x = inputs(200, 4) + torch.tensor(side * np.random.default_rng(5).standard_normal(FEATURES))
    jacobians = vmap(jacrev(network(step, weights(2, 5), relu)))(x)
    assert total_variation(influence(jacobians.mean(0)), step @ step).max() > 0.1


@pytest.mark.parametrize("layers", [2, 3])
def test_symmetric_normalisation_gives_the_walk_divided_by_the_root_of_the_sources_degree(layers: int) -> None:
    adjacency = scale_free(60, 2, seed=layers)
    walk = np.linalg.matrix_power(row_normalised(adjacency), layers)
    layers_of = weights(layers, 6)
    product_of_weights = torch.linalg.multi_dot(layers_of) if layers > 1 else layers_of[0]
    moved = torch.tensor(np.linalg.matrix_power(symmetric(adjacency), layers))
    found = influence(torch.einsum("ji,dc->jcid", moved, product_of_weights))
    np.testing.assert_allclose(found, normalised(walk / np.sqrt(adjacency.sum(1) + 1)), atol=1e-12)
    assert 0.08 < total_variation(found, walk).mean() < 0.15  # not the walk of the theorem


def test_the_influence_of_a_symmetric_network_by_its_jacobian_is_what_its_powers_say() -> None:
    adjacency = scale_free(NODES, 2, seed=4)
    jacobian = jacrev(network(symmetric(adjacency), weights(2, 7), linear))(inputs(1, 6)[0])
    expected = normalised(np.linalg.matrix_power(symmetric(adjacency), 2))
    np.testing.assert_allclose(influence(jacobian), expected, atol=1e-12)


def test_separate_weights_for_the_node_and_its_neighbours_leave_the_walk() -> None:
    # GraphSAGE: x_j W_self + mean of neighbours W_near; the weights decide the influence of a node on itself
    adjacency = scale_free(NODES, 2, seed=5)
    near = torch.tensor(adjacency / adjacency.sum(1, keepdims=True))
    one, other = weights(1, 8)[0], weights(1, 9)[0]
    jacobian = jacrev(lambda x: x @ (4 * one) + near @ x @ other)(inputs(1, 7)[0])
    assert total_variation(influence(jacobian), row_normalised(adjacency)).mean() > 0.3
