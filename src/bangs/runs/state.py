"""State: where a run stands after a round, as the tensors and facts of a checkpoint."""

from typing import Any

from torch import Tensor

from bangs.learners.training import Learner, Teacher
from bangs.loop import State
from bangs.runs.checkpoint import Checkpoint
from bangs.types import Labels, Prediction

_ROLES = ("student", "teacher", "best")


def pack(state: State) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What the next round needs. A model that plays several roles is stored once.

    Logits are stored though the weights would give them again: on a GPU not always in the last bit.
    """
    tensors = {
        "labels.target": state.labels.target,
        "labels.weight": state.labels.weight,
        "labels.born": state.labels.born,
        "logits": state.prediction.logits,
        "best_round": state.best_round,
        "running": state.running,
        "took_part": state.took_part,
    }
    played: dict[str, str] = {}  # role -> the first role of the same model
    for role in _ROLES:
        model = getattr(state, role)
        played[role] = next((other for other in played if getattr(state, other) is model), role)
        if played[role] == role:
            tensors |= {f"{role}.weights.{name}": value for name, value in model.weights.items()}
            tensors |= {f"{role}.{name}": getattr(model, name) for name in ("validation", "epochs", "sound")}
    # the weights to start students from are the first model's, whoever carries them
    tensors |= {f"early.{name}": value for name, value in (state.student.early or {}).items()}
    return tensors, {"roles": played}


def unpack(checkpoint: Checkpoint, learner: Learner) -> State:
    """The state that was packed, on the learner's device; how the round came about is not kept."""
    tensors = {name: value.to(learner.task.device) for name, value in checkpoint.tensors.items()}
    early = _below(tensors, "early.") or None
    models: dict[str, Teacher] = {}
    for role, first in checkpoint.facts["roles"].items():
        models[role] = models[first] if first in models else _teacher(learner, tensors, role, early)
    return State(
        index=checkpoint.round,
        labels=Labels(tensors["labels.target"], tensors["labels.weight"], tensors["labels.born"]),
        student=models["student"],
        prediction=Prediction(tensors["logits"]),
        teacher=models["teacher"],
        best=models["best"],
        best_round=tensors["best_round"],
        running=tensors["running"],
        took_part=tensors["took_part"],
    )


def _teacher(learner: Learner, tensors: dict[str, Tensor], role: str, early: dict[str, Tensor] | None) -> Teacher:
    validation, epochs, sound = (tensors[f"{role}.{name}"] for name in ("validation", "epochs", "sound"))
    return Teacher(learner, _below(tensors, f"{role}.weights."), validation, epochs, sound, early)


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
