"""Strategies on small graphs where the best node is known on paper."""

import math
from dataclasses import replace

import pytest
import torch

from bangs.errors import InvalidInput, UnknownName
from bangs.graphs.edges import EdgeList
from bangs.suggestion.batches import batch
from bangs.suggestion.expected_banzhaf_values import LABEL_CONFIDENCE
from bangs.suggestion.node_vectors import merged
from bangs.suggestion.posterior import NOISE, Posterior, weighted_gram
from bangs.suggestion.reasons import with_reasons
from bangs.suggestion.strategies import DEFAULT, STRATEGIES, strategy
from bangs.suggestion.strategy_input import StrategyInput
from bangs.valuation.banzhaf import Exact
from bangs.valuation.information import Information


def path(nodes: int) -> EdgeList:
    source = torch.arange(nodes - 1)
    return EdgeList(torch.cat([torch.stack([source, source + 1]), torch.stack([source + 1, source])], 1), nodes)


def strategy_input(nodes: int = 40, count: int = 5) -> StrategyInput:
    """Two clusters of points far apart; the first node has a label."""
    rng = torch.Generator().manual_seed(0)
    side = (torch.arange(nodes) >= nodes // 2).float()
    points = torch.randn(nodes, 4, generator=rng) * 0.3
    points[:, 0] += 2 * side - 1
    probs = torch.rand(nodes, 3, generator=rng).add(0.1)
    label = torch.full((nodes,), -1)
    label[0] = 0
    disagreement = torch.rand(nodes, generator=rng)
    return StrategyInput(
        path(nodes), probs / probs.sum(1, keepdim=True), label, label < 0, points, disagreement, count=count
    )


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_batch_has_distinct_nodes_of_the_pool_and_is_the_same_again(name: str) -> None:
    first, _ = batch(strategy_input(), STRATEGIES[name])
    nodes = [item.node for item in first]
    assert len(set(nodes)) == 5
    assert 0 not in nodes
    assert first == batch(strategy_input(), STRATEGIES[name])[0]


@pytest.mark.parametrize("name", sorted(set(STRATEGIES) - {"random", "pagerank"}))
def test_a_batch_does_not_stay_in_one_place(name: str) -> None:
    inputs = strategy_input(count=6)
    alike = replace(
        inputs, probs=torch.full_like(inputs.probs, 1 / 3), disagreement=torch.ones(inputs.nodes), _cache={}
    )
    nodes = [item.node for item in batch(alike, STRATEGIES[name])[0]]
    assert any(node >= 20 for node in nodes), "the cluster without a label is asked about"


def test_entropy_asks_where_the_model_knows_least() -> None:
    inputs = strategy_input()
    probs = torch.tensor([0.9, 0.05, 0.05]).expand(inputs.nodes, 3).clone()
    probs[31] = 1 / 3
    for name in ("entropy", "margin"):
        assert batch(replace(inputs, probs=probs, _cache={}), STRATEGIES[name])[0][0].node == 31


def test_disagreement_asks_where_folds_differ_and_says_where_they_are_not_kept() -> None:
    inputs = strategy_input()
    disagreement = torch.zeros(inputs.nodes)
    disagreement[17] = 1
    assert batch(replace(inputs, disagreement=disagreement, _cache={}), STRATEGIES["disagreement"])[0][0].node == 17
    with pytest.raises(InvalidInput, match="fit it again"):
        batch(replace(inputs, disagreement=None, _cache={}), STRATEGIES["disagreement"])


def test_k_centre_takes_the_farthest_point_first() -> None:
    inputs = strategy_input()
    far = (inputs.points - inputs.points[0]).square().sum(1)
    assert batch(inputs, STRATEGIES["k-centre"])[0][0].node == int(far.argmax())


def test_pagerank_takes_the_middle_of_a_star() -> None:
    leaves = torch.arange(1, 10)
    middle = torch.zeros_like(leaves)
    edges = torch.cat([torch.stack([leaves, middle]), torch.stack([middle, leaves])], 1)
    label = torch.full((12,), -1)
    label[11] = 0
    tail = torch.tensor([[10, 11], [11, 10]])
    star = EdgeList(torch.cat([edges, tail], 1), 12)
    points = torch.eye(12)
    inputs = StrategyInput(star, torch.full((12, 2), 0.5), label, label < 0, points, count=2)
    assert batch(inputs, STRATEGIES["pagerank"])[0][0].node == 0


def test_the_gain_is_the_fall_of_the_variance_on_paper() -> None:
    inputs = strategy_input()
    z = inputs.points
    before, gram = inputs.posterior, weighted_gram(z, torch.ones(len(z)))
    gain = before.gain(z, gram)
    for node in (3, 25):
        after = before.updated(z[node][None])
        fall = (before.variance(z) - after.variance(z)).sum() / len(z)
        assert float(gain[node]) == pytest.approx(float(fall), rel=1e-3)


def test_one_label_in_one_direction_leaves_the_variance_known_on_paper() -> None:
    z = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    after = Posterior.of(z[:1])
    assert after.variance(z).tolist() == pytest.approx([NOISE / (1 + NOISE), 1.0], rel=1e-4)


def test_labels_taken_one_by_one_or_together_teach_the_same() -> None:
    z = strategy_input().points
    one = Posterior.of(z[:3]).updated(z[5:6]).updated(z[7:9])
    assert torch.allclose(one.covariance, Posterior.of(z[[0, 1, 2, 5, 7, 8]]).covariance)


def test_duplicates_and_nodes_without_edges_are_skipped_and_said() -> None:
    inputs = strategy_input(count=30)
    points = inputs.features
    assert points is not None
    points = points.clone()
    points[30] = points[0]  # like the labelled node
    edges = inputs.graph.edge_index
    linked = (edges != 12).all(0)  # node 12 loses its edges
    taken, skipped = batch(
        replace(inputs, features=points, graph=EdgeList(edges[:, linked], inputs.nodes), _cache={}),
        STRATEGIES["random"],
    )
    like = {item.node: item.like for item in skipped}
    assert (like[12], like[30]) == (None, 0)
    assert not {12, 30} & {item.node for item in taken}


def test_two_nodes_that_are_the_same_are_asked_about_once() -> None:
    inputs = strategy_input(count=38)
    points = inputs.features
    assert points is not None
    points = points.clone()
    points[25] = points[24]
    taken, skipped = batch(replace(inputs, features=points, _cache={}), STRATEGIES["error"])
    nodes = [item.node for item in taken]
    assert (24 in nodes) != (25 in nodes)
    assert [item.like is None for item in skipped] == [False]


def exact_values(inputs: StrategyInput, label: torch.Tensor) -> torch.Tensor:
    """The slow twin of `expected_banzhaf_values` where the labels of all nodes are certain: all coalitions count."""
    logit = math.log(LABEL_CONFIDENCE / (1 - LABEL_CONFIDENCE) * (inputs.classes - 1))
    players = inputs.pool.nonzero()[:, 0]
    logits = torch.nn.functional.one_hot(label, inputs.classes)[None] * logit
    game = Information.of(inputs.operator, logits, inputs.known[None], players[None], tolerance=0)
    values = torch.full((inputs.nodes,), float("-inf"))
    values[players] = Exact()(game, inputs.count).mean[0].float()
    return values


def test_information_is_the_banzhaf_value_where_labels_are_certain() -> None:
    inputs = strategy_input(12, 3)
    label = torch.arange(12) % 3
    label[0] = inputs.label[0]
    certain = replace(inputs, probs=torch.nn.functional.one_hot(label, 3).float(), _cache={})
    values, expected = STRATEGIES["information"](certain, []), exact_values(certain, label)
    assert torch.equal(values.isfinite(), inputs.pool)
    assert torch.allclose(
        values[inputs.pool], expected[inputs.pool], atol=0.15 * float(expected[inputs.pool].abs().max())
    )


def test_information_of_an_uncertain_label_lies_between_those_of_its_classes() -> None:
    inputs = strategy_input(12, 3)
    label = torch.arange(12) % 3
    label[0] = inputs.label[0]
    probs = torch.nn.functional.one_hot(label, 3).float()
    probs[6] = torch.tensor([0.5, 0.5, 0.0])
    value = float(STRATEGIES["information"](replace(inputs, probs=probs, _cache={}), [])[6])
    ends = sorted(float(exact_values(inputs, label.index_fill(0, torch.tensor(6), c))[6]) for c in (0, 1))
    slack = 0.15 * max(map(abs, ends))
    assert ends[0] - slack <= value <= ends[1] + slack


def test_merged_points_keep_the_weighted_mean_of_inner_products() -> None:
    rng = torch.Generator().manual_seed(1)
    one, two = torch.randn(50, 5, generator=rng), torch.randn(50, 7, generator=rng)
    points = merged([one, two], [3.0, 1.0], width=12)
    scaled = [part / part.square().sum(1).mean().sqrt() for part in (one, two)]
    expected = 0.75 * scaled[0] @ scaled[0].T + 0.25 * scaled[1] @ scaled[1].T
    assert torch.allclose(points @ points.T, expected, atol=1e-4)
    narrow = merged([one, two], [3.0, 1.0], width=11)
    assert narrow.shape == (50, 11)
    assert float((narrow @ narrow.T - expected).norm() / expected.norm()) < 0.1


def test_reasons_name_classes_and_numbers() -> None:
    inputs = strategy_input()
    taken, _ = batch(inputs, STRATEGIES[DEFAULT])
    trees = ["ash", "oak", "yew"]
    for item, fact in zip(taken, with_reasons(inputs, taken, range(40), trees, DEFAULT), strict=True):
        assert "The model" in fact.reason
        assert f"'{fact.label}'" in fact.reason
        assert fact.label == trees[int(inputs.probs[item.node].argmax())]
        assert fact.degree == (1 if item.node == 39 else 2)


def test_an_unknown_strategy_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownName, match="did you mean 'entropy'"):
        strategy("entropie")


def test_where_nearly_all_is_certain_the_default_still_asks_about_the_node_in_doubt() -> None:
    probs = torch.zeros(40, 3)
    probs[torch.arange(40), (torch.arange(40) >= 20).long()] = 1.0
    probs[33] = torch.tensor([0.4, 0.6, 0.0])
    certain = replace(strategy_input(count=1), probs=probs * 0.9999 + 0.0001 / 3)
    assert [item.node for item in batch(certain, STRATEGIES[DEFAULT])[0]] == [33]
