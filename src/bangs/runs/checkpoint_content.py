"""Convert the state of a run to the tensors and facts of a checkpoint, and back."""

from typing import Any

import torch
from torch import Tensor

from bangs.core.types import Labels, Prediction
from bangs.errors import InvalidInput
from bangs.runs.checkpoint_file import Checkpoint
from bangs.selftraining.loop import State
from bangs.training.teacher import Teacher
from bangs.training.trainer import Learner

_ROLES = ("student", "teacher", "best")
_LABEL_TENSORS = {"target": torch.long, "weight": torch.float32, "adopted_round": torch.long}  # [R, N]
_RUN_TENSORS = {"best_round": torch.long, "running": torch.bool, "took_part": torch.bool}  # [R]
_MODEL_TENSORS = {"validation": torch.float64, "epochs": torch.long, "sound": torch.bool}  # [R]


def pack(state: State) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts that the next round needs. A model with several roles is stored once.

    Logits are stored too: on a GPU the weights do not always reproduce their last bit.
    """
    tensors = {f"labels.{name}": getattr(state.labels, name) for name in _LABEL_TENSORS}
    tensors |= {"logits": state.prediction.logits, **{name: getattr(state, name) for name in _RUN_TENSORS}}
    if state.labels.belief is not None:
        tensors["labels.belief"] = state.labels.belief
    roles: dict[str, str] = {}  # role -> the first role of the same model
    for role in _ROLES:
        model = getattr(state, role)
        roles[role] = next((other for other in roles if getattr(state, other) is model), role)
        if roles[role] == role:
            tensors |= {f"{role}.weights.{name}": value for name, value in model.weights.items()}
            tensors |= {f"{role}.{name}": getattr(model, name) for name in _MODEL_TENSORS}
    # `early`, the initial weights of students, is the same in all models
    tensors |= {f"early.{name}": value for name, value in (state.student.early or {}).items()}
    return tensors, {"roles": roles}


def unpack(checkpoint: Checkpoint, learner: Learner) -> State:
    """The state that was packed, on the device of the learner; the facts of its adoption are not stored."""
    if problem := _problem(checkpoint, learner):
        raise InvalidInput(
            f"the checkpoint of round {checkpoint.round} does not belong to this run: {problem}; "
            "remove it to continue from the one before, or the whole folder to begin again"
        )
    tensors = {name: value.to(learner.task.device) for name, value in checkpoint.tensors.items()}
    early = with_prefix(tensors, "early.") or None
    models: dict[str, Teacher] = {}
    for role, first in checkpoint.facts["roles"].items():
        if first == role:
            facts: dict[str, Any] = {name: tensors[f"{role}.{name}"] for name in _MODEL_TENSORS}
            models[role] = Teacher(learner, with_prefix(tensors, f"{role}.weights."), **facts, early=early)
        models[role] = models[first]
    fields: dict[str, Any] = {**models, **{name: tensors[name] for name in _RUN_TENSORS}}
    labels, prediction = Labels(**with_prefix(tensors, "labels.")), Prediction(tensors["logits"])
    return State(checkpoint.round, labels, prediction=prediction, **fields)


def _problem(checkpoint: Checkpoint, learner: Learner) -> str | None:
    """What makes an intact checkpoint differ from what `pack` writes for this task; None = nothing."""
    task, roles, tensors = learner.task, checkpoint.facts.get("roles"), checkpoint.tensors
    if (
        not isinstance(roles, dict)
        or tuple(roles) != _ROLES
        or any(first not in _ROLES[: _ROLES.index(role) + 1] for role, first in roles.items())
    ):
        return "its roles are not those of a run"
    stored_roles = [role for role, first in roles.items() if role == first]
    expected = _shapes(learner, stored_roles, early=any(name.startswith("early.") for name in tensors))
    if "labels.belief" in tensors:
        expected["labels.belief"] = expected["logits"]
    actual = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}
    wrong = sorted(name for name in expected.keys() | actual.keys() if expected.get(name) != actual.get(name))
    if wrong:
        return f"tensor '{wrong[0]}' is {actual.get(wrong[0], 'missing')}, not {expected.get(wrong[0], 'known')}"
    target = tensors["labels.target"]
    return (
        None if -1 <= target.min() <= target.max() < task.classes else f"its labels lie outside 0 … {task.classes - 1}"
    )


def _shapes(learner: Learner, roles: list[str], *, early: bool) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """The shape and type of every tensor that `pack` writes."""
    task, weights = learner.task, learner.network.weights()
    runs, nodes = (task.runs,), (task.runs, task.nodes)
    shapes: dict[str, tuple[tuple[int, ...], torch.dtype]] = {"logits": ((*nodes, task.classes), torch.float32)}
    shapes |= {f"labels.{name}": (nodes, kind) for name, kind in _LABEL_TENSORS.items()}
    shapes |= {name: (runs, kind) for name, kind in _RUN_TENSORS.items()}
    weight_shapes = {name: (tuple(value.shape), value.dtype) for name, value in weights.items()}
    for role in roles:
        shapes |= {f"{role}.weights.{name}": shape for name, shape in weight_shapes.items()}
        shapes |= {f"{role}.{name}": (runs, kind) for name, kind in _MODEL_TENSORS.items()}
    return shapes | ({f"early.{name}": shape for name, shape in weight_shapes.items()} if early else {})


def with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with the prefix, by their names without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
