"""Save the predictions of a blind run in its folder, to compute test accuracies later."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.runs.folder import round_file
from bangs.selftraining.loop import State
from bangs.utils.files import make_folder, read_regular_file, write_atomic

FOLDER = "blind"  # in the run folder
MAX_ROUND_BYTES = 1 << 32


def write_round(run: Path, state: State) -> None:
    """Save the predicted labels and the pseudo-labels of a round: [R, N] each, -1 = none."""
    adopted = torch.where(state.labels.adopted, state.labels.target, -1)
    labels = {"predicted": state.prediction.label, "adopted": adopted}
    body = save({name: value.to(torch.int16).cpu().contiguous() for name, value in labels.items()})
    make_folder(run / FOLDER)
    write_atomic(round_file(run / FOLDER, state.index), body)


def read_round(run: Path, round: int, shape: torch.Size) -> tuple[Tensor, Tensor]:
    """The predicted labels and the pseudo-labels of a round, long [R, N] each."""
    file = round_file(run / FOLDER, round)
    try:
        tensors = load(read_regular_file(file, MAX_ROUND_BYTES))
    except (FileNotFoundError, SafetensorError) as error:
        raise InvalidInput(f"'{file}' is missing or damaged, so round {round} cannot be marked: run again") from error
    labels = tensors.get("predicted"), tensors.get("adopted")
    if any(tensor is None or tensor.shape != shape or tensor.dtype != torch.int16 for tensor in labels):
        raise InvalidInput(f"'{file}' does not hold the predictions of this run's {shape[0]} seeds: run again")
    return tensors["predicted"].long(), tensors["adopted"].long()
