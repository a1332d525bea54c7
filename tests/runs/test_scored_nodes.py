"""The scored_nodes: true counts, though it keeps the best only."""

import pytest
import torch

from bangs.errors import InvalidInput
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.explanation_facts import PseudoLabel
from bangs.runs.scored_nodes import ScoredNodes, check_integers
from bangs.runs.snapshot import Snapshot
from tests.conftest import two_rings


def fitted(**settings: object) -> SelfTrainingClassifier:
    """Sixty nodes on two rings, twenty-four of them with a label, by confidence."""
    data = two_rings(60, 3)
    data.y = torch.where(torch.arange(60) < 24, data.y, -1)
    return SelfTrainingClassifier(selector="confidence", validation=0.25, rounds=2, k=4, epochs=10, **settings).fit(
        data
    )


def adoptions(model: SelfTrainingClassifier) -> dict[int, PseudoLabel]:
    adoptions_by_node = {node: model.explain(node).adoption for node in range(60)}
    return {node: adoption for node, adoption in adoptions_by_node.items() if adoption is not None}


def test_a_round_counts_all_scored_nodes_though_it_keeps_the_best_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bangs.runs.scored_nodes.MAX_LOGGED_NODES", 10)
    model = fitted()
    scored_nodes = model.snapshot_.scored_nodes
    assert torch.bincount(scored_nodes.round).tolist() == [0, 10, 10]
    adopted = adoptions(model).values()
    assert sorted((adoption.round, adoption.rank) for adoption in adopted) == [
        (t, rank) for t in (1, 2) for rank in (1, 2, 3, 4)
    ]
    assert {(adoption.round, adoption.among) for adoption in adopted} == {
        (1, 36),
        (2, 32),
    }  # sixty less twenty-four; less four more


def test_who_was_taken_far_down_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing kept but those that were taken, as when each class takes its own best."""
    all_kept = fitted().snapshot_.scored_nodes
    monkeypatch.setattr("bangs.runs.scored_nodes.MAX_LOGGED_NODES", 0)
    taken_kept = fitted().snapshot_.scored_nodes
    assert taken_kept.taken.all()
    for name in ("node", "place", "among"):
        assert getattr(taken_kept, name).tolist() == getattr(all_kept.where(all_kept.taken), name).tolist()


def test_the_reasons_name_the_place_and_the_number() -> None:
    model = fitted()
    best = next(node for node, adoption in adoptions(model).items() if (adoption.round, adoption.rank) == (1, 1))
    assert "number 1 of 36 candidates" in str(model.explain(best))


def test_a_file_whose_places_go_beyond_their_number_is_refused() -> None:
    tensors, facts = fitted().snapshot_.to_plain()
    with pytest.raises(
        InvalidInput, match=r"'candidate_log.place' of the saved run must be one of 1 to 'candidate_log.among'"
    ):
        Snapshot.from_plain({**tensors, "candidate_log.place": tensors["candidate_log.among"] + 1}, facts)


def test_a_run_without_rounds_has_an_empty_ledger_that_can_be_read_again() -> None:
    data = two_rings(24)
    scored_nodes = (
        SelfTrainingClassifier(method="hard", validation=0.25, rounds=0, epochs=2).fit(data).snapshot_.scored_nodes
    )
    assert len(ScoredNodes.from_plain(scored_nodes.to_plain())) == 0


def test_bytes_hold_two_hundred_and_fifty_six_classes() -> None:
    every = torch.arange(256).to(torch.uint8)
    check_integers("round_labels", every, 0, 256)
    with pytest.raises(InvalidInput, match="'round_labels' of the saved run must hold whole numbers from 0 to 254"):
        check_integers("round_labels", every, 0, 255)
