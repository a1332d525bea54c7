"""The ledger: true counts, though it keeps the best only, and what older files tell of them."""

import pytest
import torch
from tests.conftest import two_rings

from bangs.classifier import SelfTrainingClassifier
from bangs.cli.reasons import in_words
from bangs.errors import InvalidInput
from bangs.explain import Adoption
from bangs.ledger import Ledger, check_whole
from bangs.snapshot import Snapshot


def fitted(**settings: object) -> SelfTrainingClassifier:
    """Sixty nodes on two rings, twenty-four of them with a label, by confidence."""
    data = two_rings(60, 3)
    data.y = torch.where(torch.arange(60) < 24, data.y, -1)
    return SelfTrainingClassifier(selector="confidence", rounds=2, k=4, epochs=10, **settings).fit(data)


def adoptions(model: SelfTrainingClassifier) -> dict[int, Adoption]:
    found = {node: model.explain(node).adoption for node in range(60)}
    return {node: own for node, own in found.items() if own is not None}


def test_a_round_tells_how_many_were_scored_though_it_keeps_the_best_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bangs.ledger.KEPT", 10)
    model = fitted()
    ledger = model.snapshot_.ledger
    assert torch.bincount(ledger.round).tolist() == [0, 10, 10]
    told = adoptions(model).values()
    assert sorted((own.round, own.place) for own in told) == [(t, place) for t in (1, 2) for place in (1, 2, 3, 4)]
    assert {(own.round, own.among) for own in told} == {(1, 36), (2, 32)}  # sixty less twenty-four; less four more


def test_who_was_taken_far_down_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing kept but those that were taken, as when each class takes its own best."""
    all_kept = fitted().snapshot_.ledger
    monkeypatch.setattr("bangs.ledger.KEPT", 0)
    taken_kept = fitted().snapshot_.ledger
    assert taken_kept.taken.all()
    for name in ("node", "place", "among"):
        assert getattr(taken_kept, name).tolist() == getattr(all_kept.where(all_kept.taken), name).tolist()


def older(ledger: Ledger) -> Ledger:
    """As a file that tells neither places nor counts has it."""
    newer = ("ledger.place", "ledger.among")
    return Ledger.from_plain({name: own for name, own in ledger.to_plain().items() if name not in newer})


def test_an_older_file_tells_what_its_lines_tell() -> None:
    ledger = fitted().snapshot_.ledger
    found = older(ledger)
    assert found.place.tolist() == ledger.place.tolist()
    assert found.among.tolist() == ledger.among.tolist()


def test_an_older_file_that_kept_the_best_only_does_not_say_of_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted()
    monkeypatch.setattr("bangs.ledger.KEPT", 3)
    monkeypatch.setattr("bangs.cli.reasons.KEPT", 3)
    tensors, facts = model.snapshot_.to_plain()
    tensors = {name: own for name, own in tensors.items() if name not in ("ledger.place", "ledger.among")}
    model.snapshot_ = Snapshot.from_plain(tensors, facts)
    told = adoptions(model)
    assert {own.among for own in told.values()} == {None}
    assert sorted(own.place or 99 for own in told.values()) == [1, 1, 2, 2, 3, 3, 99, 99]
    first = next(node for node, own in told.items() if own.place == 1)
    fourth = next(node for node, own in told.items() if own.place is None)
    names, classes = [str(node) for node in range(60)], ["a", "b", "c"]
    assert "number 1 of 3 or more candidates" in in_words(model.explain(first), names, classes)
    assert "below the 3 best candidates" in in_words(model.explain(fourth), names, classes)


def test_a_run_without_rounds_has_an_empty_ledger_that_can_be_read_again() -> None:
    data = two_rings(24)
    ledger = SelfTrainingClassifier(rounds=0, epochs=2).fit(data).snapshot_.ledger
    assert len(older(ledger)) == len(Ledger.from_plain(ledger.to_plain())) == 0


def test_bytes_hold_two_hundred_and_fifty_six_classes() -> None:
    every = torch.arange(256).to(torch.uint8)
    check_whole("said", every, 0, 256)
    with pytest.raises(InvalidInput, match="'said' of the saved run must hold whole numbers from 0 to 254"):
        check_whole("said", every, 0, 255)
