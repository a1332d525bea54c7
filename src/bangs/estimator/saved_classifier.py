"""Saved classifier: a fitted classifier to one safetensors file and back."""

from pathlib import Path
from typing import Any

import numpy as np

from bangs.errors import InvalidInput
from bangs.estimator import model_file, saved_parameters
from bangs.estimator.fitted import read_members
from bangs.estimator.linear import LinearTrainer
from bangs.graphs.tables.feature_encoding import Encoding
from bangs.training.trainer import Trainer


def save(model: Any, path: str | Path) -> None:
    """Write all that `load` needs of a fitted classifier to one file; a folder gets a `model.safetensors`."""
    tensors, facts = model.snapshot_.to_plain(model_file.model_file(path).parent)
    model_file.save(
        path,
        tensors
        | {f"{model_file.WEIGHTS}{name}": value for name, value in model.weights_.items()}
        | model_file.pack_names(model.node_names_),
        {
            "snapshot": facts,
            "params": {name: saved_parameters.spell(value) for name, value in model.get_params(deep=False).items()},
            "members": [own.to_plain() for own in model.members_],
            "seed": model.seed_,
            "leaderboard": model.leaderboard_,
            "notes": model.notes_,
            "classes": model.classes_.tolist(),
            "features": model.n_features_in_,
            "feature_names": [str(name) for name in getattr(model, "feature_names_in_", ())],
            "columns": None if model.columns_ is None else model.columns_.to_dict(),
            "rounds": model.n_iter_,
            "ended": model.termination_condition_,
        },
    )


def load(kind: type[Any], path: str | Path, store: str | Path | None, parts: dict[str, Any]) -> Any:
    """The classifier of a kind saved at the path, with parts that could not be saved; all of the file is checked."""
    tensors, facts = model_file.load(path)
    model = parts.get("model")
    own = model.model if isinstance(model, Trainer | LinearTrainer) else model
    with model_file.sound(path):
        found = kind(**{name: saved_parameters.read(name, value, parts) for name, value in facts["params"].items()})
        if "calibrator" not in parts:
            saved_parameters.check_calibrator(found.calibrator)
        found.n_features_in_ = int(facts["features"])
        if facts["feature_names"]:
            found.feature_names_in_ = np.array([str(name) for name in facts["feature_names"]], dtype=object)
        weights, classes = model_file.weights_in(tensors), len(facts["classes"])
        found.members_ = read_members(facts["members"], weights, found.n_features_in_, classes, own)
        found.seed_, found.notes_ = int(facts["seed"]), [str(note) for note in facts["notes"]]
        found.leaderboard_ = list(facts["leaderboard"])
        columns = facts.get("columns")
        found.columns_ = None if columns is None else Encoding.from_dict(columns)
        found.snapshot_, found.classes_, found.node_names_ = model_file.read_run(path, tensors, facts, store)
        if not found.history_:
            raise InvalidInput("it holds no row of any round; it was not written by bangs")
        found.n_iter_, found.termination_condition_ = int(facts["rounds"]), str(facts["ended"])
    return found
