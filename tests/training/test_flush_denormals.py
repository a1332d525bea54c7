"""Subnormal numbers count as zero during training."""

import pytest
import torch

from bangs.core.rng import Streams
from bangs.nn.ensemble import Network
from bangs.nn.models import GCN
from bangs.training.flush_denormals import flush_denormals
from bangs.training.trainer import Trainer


@pytest.fixture(autouse=True)
def keep_setting():
    if not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot take tiny numbers as zero")
    yield
    torch.set_flush_denormal(False)


def halved() -> float:
    return float(torch.tensor(torch.finfo(torch.float32).tiny).div(2))


def test_they_are_zero_inside_and_themselves_again_outside():
    assert halved() > 0
    with flush_denormals():
        assert halved() == 0
    assert halved() > 0


def test_the_former_setting_comes_back_after_an_error():
    torch.set_flush_denormal(True)
    with flush_denormals():
        pass
    assert halved() == 0
    torch.set_flush_denormal(False)
    with pytest.raises(KeyError), flush_denormals():
        raise KeyError
    assert halved() > 0


def test_a_trainer_learns_without_them_and_answers_with_them(task, monkeypatch):
    recorded, forward = [], Network.forward
    monkeypatch.setattr(Network, "forward", lambda *words: recorded.append(halved()) or forward(*words))
    teacher = Trainer(GCN(hidden=4), epochs=2).fit(task, task.given, Streams((1, 2, 3)))
    assert not any(recorded)
    recorded.clear()
    teacher.predict(task.graph)
    assert all(recorded)
