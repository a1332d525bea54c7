"""Reasons: influences known on paper, and words that agree with numbers."""

from dataclasses import replace

import pytest
import torch

from bangs.errors import InvalidInput
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.explanation import Explanation, explain
from bangs.estimator.explanation_facts import influences, neighbours, origins, relative_weights
from bangs.graphs.edges import EdgeList
from bangs.graphs.pagerank import PPR, ExactPPR
from bangs.graphs.pagerank_truncated import TruncatedPPR
from bangs.runs.scored_nodes import ScoredNodes
from bangs.runs.snapshot import Snapshot
from tests.conftest import few_labels


def scored_nodes(*rows: tuple[int, int, bool, int]) -> ScoredNodes:
    """Lines of (round, node, taken, label)."""
    table = torch.tensor(rows, dtype=torch.long).reshape(-1, 4)
    half, no_stderr = torch.full((len(table),), 0.5), torch.full((len(table),), float("nan"))
    same = table[:, 0] == table[:, :1]  # lines of the same round
    rank, among = same.tril().sum(1), same.sum(1)
    return ScoredNodes(
        table[:, 0], table[:, 1], table[:, 2].bool(), table[:, 3], half, half, half, no_stderr, rank, among
    )


def line_graph(log: ScoredNodes | None = None) -> Snapshot:
    """Four nodes in a row, 0 – 1 – 2 – 3; node 0 is given as class 0, node 3 as class 1; round 1 follows round 0."""
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    given = torch.tensor([0, -1, -1, 1])
    log = scored_nodes() if log is None else log
    target, adopted_round = given.clone(), torch.where(given >= 0, 0, -1)
    for row in log.taken.nonzero().flatten().tolist():
        target[log.node[row]], adopted_round[log.node[row]] = log.label[row], log.round[row]
    logits = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    return Snapshot(
        graph=EdgeList(torch.cat([edges, edges.flip(0)], dim=1), 4),
        given=given,
        held=torch.full((4,), -1),
        target=target,
        adopted_round=adopted_round,
        raw=logits,
        calibrated=logits,
        round_labels=logits.argmax(-1).repeat(3, 1),
        round_confidence=logits.softmax(-1).amax(-1).repeat(3, 1),
        scored_nodes=log,
        chosen=2,
        rows=[{"round": 0}, {"round": 1}, {"round": 2}],
    )


def explained(snapshot: Snapshot, node: int) -> Explanation:
    return explain(snapshot, node, list("abcd"), ["u", "v"])


def test_influence_is_the_row_of_personalised_pagerank() -> None:
    snapshot = line_graph()
    exact = ExactPPR()(snapshot.graph).matrix
    (strongest, support, reach) = influences(snapshot, [1], top=5, propagate=PPR(steps=200))[0]
    near, far = float(exact[1, 0]), float(exact[1, 3])
    assert [item.node for item in strongest] == [0, 3]
    assert strongest[0].share == pytest.approx(near / (near + far), abs=1e-5)
    assert support == pytest.approx([near / (near + far), far / (near + far)], abs=1e-5)
    assert reach == pytest.approx((near + far) / (1 - float(exact[1, 1])), abs=1e-4)


def test_truncated_walks_give_the_influences_of_personalised_pagerank() -> None:
    snapshot = SelfTrainingClassifier(rounds=2, k=5, epochs=10).fit(few_labels(60, 3, 24)).snapshot_
    nodes = list(range(60))
    far, near = (influences(snapshot, nodes, 2, part) for part in (PPR(steps=100), TruncatedPPR(steps=100, floor=0.0)))
    for item, two in zip(far, near, strict=True):
        assert [other.share for other in item[0]] == pytest.approx([other.share for other in two[0]], abs=1e-3)
        assert item[1] == pytest.approx(two[1], abs=1e-3)
        assert item[2] == pytest.approx(two[2], abs=1e-3)


def test_on_a_large_graph_only_truncated_walks_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = line_graph()
    monkeypatch.setattr("bangs.estimator.explanation_facts.MAX_EXACT_SIZE", 3)
    assert influences(snapshot, [1]) == influences(snapshot, [1], propagate=TruncatedPPR())
    assert influences(snapshot, [1]) != influences(snapshot, [1], propagate=PPR())


def test_a_label_with_a_further_neighbour_has_more_influence() -> None:
    snapshot = line_graph()
    snapshot.graph.edge_index[:] = torch.tensor([[0, 1, 1, 3, 2, 0], [1, 0, 3, 1, 0, 2]])
    (_, support, _) = influences(snapshot, [1])[0]
    assert support[0] > 0.5 > support[1]  # node 0 has a further neighbour, node 3 has none


def test_only_labels_older_than_an_adoption_count_for_it() -> None:
    snapshot = line_graph(scored_nodes((1, 1, True, 0), (2, 2, True, 1)))
    first, second = (influences(snapshot, [node])[0][0] for node in (1, 2))
    assert {item.node for item in first} == {0, 3}
    assert {item.node for item in second} == {0, 1, 3}
    assert next(item for item in second if item.node == 1).adopted_round == 1


def test_a_node_out_of_reach_of_labels_has_no_influences() -> None:
    snapshot = line_graph()
    snapshot.graph.edge_index[:] = 1
    explanation = explained(snapshot, 2)
    assert explanation.influences == []
    assert explanation.support == {"u": 0.0, "v": 0.0}
    assert explanation.reach == 0
    assert explanation.neighbours == []


def test_an_adoption_is_described_with_its_place_in_the_round() -> None:
    snapshot = line_graph(scored_nodes((1, 2, True, 1), (1, 1, True, 0)))
    adoption = explained(snapshot, 1).adoption
    assert adoption is not None
    assert (adoption.round, adoption.label, adoption.rank, adoption.among, adoption.used, adoption.stderr) == (
        1,
        "u",
        2,
        2,
        True,
        None,
    )
    assert explained(snapshot, 0).adoption is None


def test_origins_distinguish_given_held_adopted_and_predicted() -> None:
    snapshot = line_graph(scored_nodes((1, 1, True, 0)))
    assert origins(snapshot) == ["given", "adopted", "predicted", "given"]
    snapshot.held[2] = 1
    assert origins(snapshot)[2] == "held"


def test_heavier_neighbours_come_first() -> None:
    data = few_labels(24)
    data.edge_weight = torch.where(data.edge_index[0] == 2, 5.0, 1.0)
    explanation = SelfTrainingClassifier(rounds=1, epochs=5).fit(data).explain(4)
    assert (explanation.neighbours[0].node, explanation.neighbours[0].weight) == ("2", 5.0)
    assert explanation.degree == len(explanation.neighbours) == 2
    assert [step["round"] for step in explanation.path] == [0, 1]


def test_a_node_is_not_its_own_neighbour_and_several_edges_make_one() -> None:
    """Node 1 has a loop, two edges from node 0, one from node 2, and one of weight 0 from node 3."""
    snapshot = line_graph()
    weight = torch.tensor([9.0, 2.0, 1.0, 4.0, 0.0])
    edges = EdgeList(torch.tensor([[1, 0, 0, 2, 3], [1, 1, 1, 1, 1]]), 4, weight)
    explanation = explained(replace(snapshot, graph=edges), 1)
    assert [(item.node, item.weight, item.origin, item.label) for item in explanation.neighbours] == [
        ("c", 4.0, "predicted", "v"),
        ("a", 3.0, "given", "u"),
    ]
    assert explanation.degree == 2
    heaviest = neighbours(replace(snapshot, graph=edges), [0, 1, 1], top=1)
    assert [([item.node for item in nearest], degree) for nearest, degree in heaviest] == [([], 0), ([2], 2), ([2], 2)]


def test_without_influences_of_other_nodes_the_text_says_so() -> None:
    alone = replace(line_graph(), graph=EdgeList(torch.tensor([[1], [1]]), 4))
    assert "It has no neighbours: its own features decide." in explained(alone, 1).text


def test_a_node_that_is_not_there_gives_a_clear_error() -> None:
    with pytest.raises(InvalidInput, match="numbered 0 … 3"):
        explained(line_graph(), 4)


def soft_line() -> Snapshot:
    """The line graph where nodes 1 and 2 have soft labels of round 2, which weigh half and a quarter of a given one."""
    belief = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.3, 0.7], [0.0, 1.0]])
    adopted_round, target = torch.tensor([0, 2, 2, 0]), torch.tensor([0, 0, 1, 1])
    weight = torch.tensor([2.0, 1.0, 0.5, 2.0])
    return replace(line_graph(), belief=belief, weight=weight, adopted_round=adopted_round, target=target)


def test_a_soft_label_is_described_with_its_probabilities_and_its_weight() -> None:
    explanation = explained(soft_line(), 1)
    assert explanation.origin == "soft"
    assert explanation.adoption is None
    assert explanation.soft is not None
    assert (explanation.soft.round, explanation.soft.weight) == (2, 0.5)
    assert explanation.soft.probs == pytest.approx({"u": 0.9, "v": 0.1})
    assert "Its soft label in round 2 was u 90.0 %, v 10.0 %." in explanation.text
    assert "The weight of this soft label was 0.5 times the mean weight of a given label" in explanation.text
    assert explained(soft_line(), 0).soft is None


def test_weights_are_multiples_of_those_of_the_given_labels_that_the_model_learned() -> None:
    snapshot = replace(soft_line(), weight=torch.tensor([3.0, 1.0, 0.5, 0.0]))  # node 3 is held out from this fold
    assert relative_weights(snapshot).tolist() == pytest.approx([1, 1 / 3, 1 / 6, 0])


def test_soft_labels_are_no_labelled_influence() -> None:
    (strongest, support, _) = influences(soft_line(), [1])[0]
    assert {item.node for item in strongest} == {0, 3}
    assert sum(support) == pytest.approx(1)


def test_a_prediction_against_its_labelled_influence_is_noticed() -> None:
    snapshot = line_graph()
    flipped = replace(snapshot, calibrated=snapshot.calibrated.flip(1))
    text, against = (explained(fit, 1).text for fit in (snapshot, flipped))
    assert "By these shares" not in text
    assert "By these shares it would be 'u', but the model predicts 'v'" in against
