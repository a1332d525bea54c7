"""Devices by name: `auto` finds one, and a wrong word is a sentence."""

import pytest
import torch

from bangs.errors import InvalidInput, UnknownName
from bangs.utils.devices import choose_device


def test_auto_is_a_gpu_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto") == torch.device("cuda")


@pytest.mark.parametrize("name", ["tpu", "cuda:", "cuda:x", "", None, 3])
def test_an_unknown_word_is_named(name: str) -> None:
    with pytest.raises(UnknownName, match=f"device '{name}' is unknown"):
        choose_device(name)


def test_a_gpu_by_number_becomes_the_current_one_and_one_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InvalidInput, match="torch sees none here; take 'cpu' or 'auto'"):
        choose_device("cuda:0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    taken: list[int] = []
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    assert (choose_device("cuda"), taken) == (torch.device("cuda"), [])
    assert (choose_device("cuda:1"), taken) == (torch.device("cuda:1"), [1])
    with pytest.raises(InvalidInput, match="'cuda:2' is not here; torch sees 2"):
        choose_device("cuda:2")
