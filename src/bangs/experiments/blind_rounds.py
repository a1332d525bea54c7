"""Blind rounds: the predictions of a blind run in its folder, from which test accuracies can be computed later."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.runs.folder import round_file
from bangs.selftraining.loop import State
from bangs.utils.files import make_folder, read_regular_file, write_atomic

FOLDER = "blind"  # of the predictions, in the run folder
LARGEST = 1 << 32  # bytes of one round's predictions


def write_round(run: Path, state: State) -> None:
    """Keep the predicted labels and the pseudo-labels of a round: [R, N] each, -1 = none."""
    adopted = torch.where(state.labels.adopted, state.labels.target, -1)
    kept = {"predicted": state.prediction.label, "adopted": adopted}
    body = save({name: value.to(torch.int16).cpu().contiguous() for name, value in kept.items()})
    make_folder(run / FOLDER)
    write_atomic(round_file(run / FOLDER, state.index), body)


def read_round(run: Path, round: int, shape: torch.Size) -> tuple[Tensor, Tensor]:
    """The predicted labels and the pseudo-labels of a round, long [R, N] each."""
    file = round_file(run / FOLDER, round)
    try:
        found = load(read_regular_file(file, LARGEST))
    except (FileNotFoundError, SafetensorError) as error:
        raise InvalidInput(f"'{file}' is missing or damaged, so round {round} cannot be marked: run again") from error
    kept = found.get("predicted"), found.get("adopted")
    if any(one is None or one.shape != shape or one.dtype != torch.int16 for one in kept):
        raise InvalidInput(f"'{file}' does not hold the predictions of this run's {shape[0]} seeds: run again")
    return found["predicted"].long(), found["adopted"].long()
