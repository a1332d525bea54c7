"""A snapshot of soft labels: beliefs and weights of the chosen round, and only the number of every round."""

import pytest
import torch

from bangs.core.types import Split, Task
from bangs.errors import InvalidInput
from bangs.nn.models import GCN
from bangs.report.page_observer import PageObserver
from bangs.runs.history_rows import is_soft
from bangs.runs.snapshot import Snapshot
from bangs.selftraining.budget import Budget
from bangs.selftraining.loop import SelfTrainer, State
from bangs.selftraining.methods import method
from bangs.training.trainer import Trainer
from tests.conftest import two_rings


def recorded(name: str = "soft") -> tuple[PageObserver, list[State]]:
    """A recorder that saw two rounds on two rings, and the states it saw."""
    data, node = two_rings(60, 3), torch.arange(60)
    split = Split((node < 18)[None], ((node >= 18) & (node < 24))[None], (node >= 24)[None])
    recipe = method(name, Budget(k=4, rounds=2))
    recorder, states = PageObserver(recipe.calibrate), []
    observers = (recorder, states.append)
    SelfTrainer(Trainer(GCN(hidden=8), epochs=10), recipe, observers).fit(Task.of(data, split), [0])
    return recorder, states


def with_beliefs() -> tuple[Snapshot, State]:
    """The snapshot of the first recorded run that chose a round with soft labels, and the state of that round."""
    recorder, states = recorded()
    snapshot = recorder.snapshot()
    assert snapshot.chosen > 0
    return snapshot, states[snapshot.chosen]


def test_it_holds_what_the_chosen_student_learned_from() -> None:
    snapshot, state = with_beliefs()
    assert state.labels.belief is not None
    assert snapshot.belief is not None
    assert snapshot.weight is not None
    assert torch.equal(snapshot.belief, state.labels.belief[0])
    assert torch.equal(snapshot.weight, state.labels.weight[0])
    assert snapshot.belief.sum(1)[snapshot.target >= 0].tolist() == pytest.approx([1.0] * 54, abs=1e-5)


def test_rounds_of_soft_labels_keep_their_number_and_no_lines() -> None:
    snapshot, _ = with_beliefs()
    assert [row["adopted"] for row in snapshot.rows[1:]] == [[36], [36]]
    assert [is_soft(row) for row in snapshot.rows] == [False, True, True]
    assert len(snapshot.scored_nodes) == 0


def test_it_is_the_same_when_read_again() -> None:
    snapshot, _ = with_beliefs()
    restored = Snapshot.from_plain(*snapshot.to_plain())
    assert restored.belief is not None
    assert restored.weight is not None
    assert torch.equal(restored.belief, snapshot.belief)
    assert torch.equal(restored.weight, snapshot.weight)
    assert restored.rows == snapshot.rows


def test_hard_labels_of_equal_weight_leave_neither() -> None:
    tensors, _ = recorded("confidence")[0].snapshot().to_plain()
    assert not {"belief", "weight"} & tensors.keys()


@pytest.mark.parametrize("name", ["belief", "weight"])
def test_a_file_with_a_negative_number_or_another_shape_is_refused(name: str) -> None:
    tensors, facts = with_beliefs()[0].to_plain()
    with pytest.raises(InvalidInput, match=f"'{name}' of the saved run must hold no number below 0"):
        Snapshot.from_plain({**tensors, name: -tensors[name]}, facts)
    with pytest.raises(InvalidInput, match=f"'{name}' of the saved run must have shape"):
        Snapshot.from_plain({**tensors, name: tensors[name][:-1]}, facts)
