"""Concatenated and selected teachers keep every run's own values."""

import torch

from bangs.training.teacher import Teacher


def teacher(*runs: int, early: bool = False) -> Teacher:
    """Models whose every fact tells which they are."""
    mark = torch.tensor(runs)
    weights = {"w": mark[:, None].float().expand(-1, 3)}
    early_weights = {"w": -weights["w"]} if early else None
    return Teacher(None, weights, mark / 10, 10 * mark, mark % 2 == 0, early_weights)  # type: ignore[arg-type]


def marks(it: Teacher) -> list[list[float]]:
    """Which model every fact is of, run by run."""
    facts = (it.weights["w"][:, 2], 10 * it.validation, it.epochs / 10)
    assert torch.equal(it.sound, it.epochs // 10 % 2 == 0)
    return [fact.tolist() for fact in facts]


def test_a_run_is_all_of_the_one_teacher_or_all_of_the_other() -> None:
    picked = Teacher.where(torch.tensor([True, False, True]), teacher(1, 2, 3), teacher(4, 5, 6, early=True))
    assert marks(picked) == [[1, 5, 3]] * 3
    assert picked.early is not None  # the first model's, whoever carries them
    assert picked.early["w"][:, 0].tolist() == [-4, -5, -6]


def test_teachers_of_one_run_each_are_joined_in_their_order() -> None:
    joined = Teacher.concat(None, [teacher(run, early=True) for run in (3, 1, 2)])  # type: ignore[arg-type]
    assert marks(joined) == [[3, 1, 2]] * 3
    assert joined.early is not None
    assert joined.early["w"][:, 0].tolist() == [-3, -1, -2]
