"""Networks of R models: the loss by hand, and ordinary PyG modules run one after the other."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from bangs.core.rng import Streams
from bangs.core.types import one_hot
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Separate
from bangs.nn.loss import Targets
from bangs.nn.models import GCN
from bangs.nn.subgraphs import PreparedGraph, per_run_subgraph
from tests.conftest import masks, two_rings


class Scaled(nn.Module):
    """A stock layer with a buffer, and dropout of two spellings."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = GCNConv(2, 3)
        self.dropout, self.drop = 0.5, nn.Dropout(0.25)
        self.register_buffer("scale", torch.tensor([2.0]))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.drop(self.layer(torch.dropout(x, self.dropout, self.training), edge_index)) * self.scale


def cross_entropy(logits, target, weight, transition=None, belief=None):
    return Targets(target, weight, belief).cross_entropy(logits, transition)


def test_cross_entropy_by_hand():
    logits = torch.tensor([[[0.0, 0.0], [math.log(3), 0.0], [9.0, 9.0]]])
    target = torch.tensor([[0, 1, -1]])
    even = cross_entropy(logits, target, torch.ones(1, 3))
    assert even.item() == pytest.approx((math.log(2) + math.log(4)) / 2)
    weighted = cross_entropy(logits, target, torch.tensor([[1.0, 0.5, 100.0]]))
    assert weighted.item() == pytest.approx((math.log(2) + 0.5 * math.log(4)) / 2), "the mean is over nodes"


def test_cross_entropy_equals_the_stock_one_for_every_run():
    logits = torch.randn(3, 20, 4)
    target = torch.randint(-1, 4, (3, 20))
    ours = cross_entropy(logits, target, torch.ones(3, 20))
    stock = [nn.functional.cross_entropy(logits[run], target[run], ignore_index=-1) for run in range(3)]
    torch.testing.assert_close(ours, torch.stack(stock))


def test_cross_entropy_of_soft_labels_is_the_stock_one_with_a_dense_target():
    """The slow twin: torch's cross-entropy with a distribution as target, node by node."""
    logits, weight = torch.randn(3, 20, 4), torch.rand(3, 20)
    target = torch.randint(-1, 4, (3, 20))
    belief = torch.rand(3, 20, 4).softmax(-1) * (target >= 0)[..., None]
    ours = cross_entropy(logits, target, weight, belief=belief)
    for run in range(3):
        each = nn.functional.cross_entropy(logits[run], belief[run], reduction="none")
        torch.testing.assert_close(ours[run], (each * weight[run]).sum() / (target[run] >= 0).sum())


def test_beliefs_that_are_certain_are_hard_labels():
    logits, target, weight = torch.randn(2, 9, 3), torch.randint(-1, 3, (2, 9)), torch.rand(2, 9)
    soft = cross_entropy(logits, target, weight, belief=one_hot(target, 3))
    torch.testing.assert_close(soft, cross_entropy(logits, target, weight))


def test_a_transition_that_changes_nothing_changes_nothing():
    logits, target, weight = torch.randn(2, 9, 3), torch.randint(0, 3, (2, 9)), torch.rand(2, 9)
    plain = cross_entropy(logits, target, weight)
    torch.testing.assert_close(cross_entropy(logits, target, weight, torch.eye(3).expand(2, 3, 3)), plain)


def test_a_transition_by_hand():
    """A labeller that turns half of class 0 into class 1: the node is 1 with 1·½ where the model predicts 0."""
    transition = torch.tensor([[[0.5, 0.5], [0.0, 1.0]]])
    logits = torch.tensor([[[40.0, 0.0], [0.0, 0.0]]])
    loss = cross_entropy(logits, torch.tensor([[1, 1]]), torch.ones(1, 2), transition)
    assert loss.item() == pytest.approx((math.log(2) - math.log(0.75)) / 2)


def test_an_impossible_label_costs_much_but_not_infinitely():
    transition = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    loss = cross_entropy(torch.zeros(1, 1, 2), torch.tensor([[1]]), torch.ones(1, 1), transition)
    assert torch.isfinite(loss).all()


def test_weights_are_a_copy_and_load_brings_them_back():
    network = GCN(hidden=4).build(2, 2, Streams((1, 2)))
    before = network.weights()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(1)
    changed = network.weights()
    assert all(not torch.equal(before[name], changed[name]) for name in before)
    network.load(before)
    assert all(torch.equal(before[name], value) for name, value in network.weights().items())
    assert all(value.shape[0] == 2 for value in before.values())


def test_a_stock_module_is_run_as_it_is():
    graph = two_rings()
    network = Separate(Scaled, Streams((1, 2)))
    logits = network(PreparedGraph.of(graph, 2, 1.0, "symmetric").whole)
    for run in range(2):
        twin = Scaled().eval()
        twin.load_state_dict({name.replace("-", "."): value[run] for name, value in network.weights().items()})
        torch.testing.assert_close(logits[run], twin(graph.x, graph.edge_index))


def test_copies_of_a_stock_module_begin_with_weights_of_their_own():
    together, alone = Separate(Scaled, Streams((1, 2))).weights(), Separate(Scaled, Streams((2,))).weights()
    assert all(torch.equal(together[name][1:], alone[name]) for name in together)
    assert not torch.equal(*together["layer-lin-weight"])


def test_every_run_of_a_stock_module_may_see_a_graph_of_its_own():
    graph, other = two_rings(), two_rings(seed=1)
    other.edge_index = other.edge_index[:, 6:]
    network = Separate(Scaled, Streams((1, 1)))
    subgraph = per_run_subgraph([graph, other], 1.0, "symmetric", PreparedGraph.of(graph, 2, 1.0, "symmetric").whole)
    twin = Scaled().eval()
    twin.load_state_dict({name.replace("-", "."): value[0] for name, value in network.weights().items()})
    for logits, run_graph in zip(network(subgraph), (graph, other), strict=True):
        torch.testing.assert_close(logits, twin(run_graph.x, run_graph.edge_index))


def test_a_stock_modules_dropout_takes_the_rate_given_and_comes_back():
    subgraph = PreparedGraph.of(two_rings(), 2, 1.0, "symmetric").whole
    network = Separate(Scaled, Streams((1, 2)))
    logits = network(subgraph, masks(5, 6))
    assert torch.equal(network(subgraph, DropoutMasks(Streams((5, 6)).generators(), 0.0)), network(subgraph))
    nearly_gone = network(subgraph, DropoutMasks(Streams((5, 6)).generators(), 0.99))
    assert (nearly_gone == 0).float().mean() > 0.9
    assert torch.equal(network(subgraph, masks(5, 6)), logits)


def test_a_stock_modules_buffers_are_kept_per_run():
    network = Separate(Scaled, Streams((1, 2)))
    assert network.weights()["scale"].shape == (2, 1)
    halved = {**network.weights(), "scale": torch.tensor([[2.0], [1.0]])}
    subgraph = PreparedGraph.of(two_rings(), 2, 1.0, "symmetric").whole
    before = network(subgraph)
    network.load(halved)
    torch.testing.assert_close(network(subgraph), torch.stack([before[0], before[1] / 2]))


def test_a_stock_module_leaves_the_global_generator_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    network = Separate(Scaled, Streams((1, 2)))
    network(PreparedGraph.of(two_rings(), 2, 1.0, "symmetric").whole, masks(1, 2))
    assert torch.equal(torch.rand(3), expected)


def test_a_stock_modules_dropout_advances_and_belongs_to_the_run():
    subgraph = PreparedGraph.of(two_rings(), 2, 1.0, "symmetric").whole
    network = Separate(Scaled, Streams((1, 2)))
    source = masks(5, 6)
    first, second = network(subgraph, source), network(subgraph, source)
    assert not torch.equal(first, second)
    torch.manual_seed(99)
    again = masks(5, 6)
    assert torch.equal(network(subgraph, again), first)
    assert torch.equal(network(subgraph, again), second)
    assert torch.equal(network(subgraph), network(subgraph)), "no masks, no dropout"
    alone = Separate(Scaled, Streams((2,)))(PreparedGraph.of(two_rings(), 1, 1.0, "symmetric").whole, masks(6))
    assert torch.equal(alone[0], first[1])


def test_a_stock_module_refuses_a_part_of_a_graph():
    part = PreparedGraph.of(two_rings(), 1, 1.0, "symmetric").k_hop_subgraph(torch.arange(3).numpy(), 2)
    with pytest.raises(ValueError, match="whole graph"):
        Separate(Scaled, Streams((1,)))(part)
