"""Saved classifier: write a fitted classifier to one safetensors file and read it back."""

from pathlib import Path
from typing import Any

import numpy as np

from bangs.errors import InvalidInput
from bangs.estimator import model_file, saved_parameters
from bangs.estimator.feature_scaling import FeatureScaling
from bangs.estimator.fitted_attributes import read_members
from bangs.estimator.linear import LinearTrainer
from bangs.graphs.tables.fitted_encoding import Encoding
from bangs.training.trainer import Trainer

SCALING = "scaling."  # before the names of the tensors of a `FeatureScaling`


def save(model: Any, path: str | Path) -> None:
    """Write all that `load` needs of a fitted classifier to one file; a folder gets a `model.safetensors`."""
    tensors, facts = model.snapshot_.to_plain(model_file.model_file(path).parent)
    model_file.save(
        path,
        tensors
        | {f"{model_file.WEIGHTS}{name}": value for name, value in model.weights_.items()}
        | ({} if model.scaling_ is None else {f"{SCALING}{name}": t for name, t in vars(model.scaling_).items()})
        | model_file.pack_names(model.node_names_),
        {
            "snapshot": facts,
            "params": {name: saved_parameters.to_json(value) for name, value in model.get_params(deep=False).items()},
            "members": [member.to_plain() for member in model.members_],
            "seed": model.seed_,
            "leaderboard": model.leaderboard_,
            "notes": model.notes_,
            "classes": model.classes_.tolist(),
            "features": model.n_features_in_,
            "feature_names": [str(name) for name in getattr(model, "feature_names_in_", ())],
            "columns": None if model.columns_ is None else model.columns_.to_dict(),
            "rounds": model.n_iter_,
            "ended": model.termination_condition_,
            "structure_rule": model.structure_rule_,
        },
    )


def load(cls: type[Any], path: str | Path, store: str | Path | None, parts: dict[str, Any]) -> Any:
    """The classifier of class `cls` saved at the path, with the parts that a file cannot hold; the file is checked."""
    tensors, facts = model_file.load(path)
    architecture = parts.get("model")
    if isinstance(architecture, Trainer | LinearTrainer):
        architecture = architecture.model
    with model_file.explain_errors(path):
        model = cls(**{name: saved_parameters.from_json(name, value, parts) for name, value in facts["params"].items()})
        if "calibrator" not in parts:
            saved_parameters.check_calibrator(model.calibrator)
        model.n_features_in_ = int(facts["features"])
        if facts["feature_names"]:
            model.feature_names_in_ = np.array([str(name) for name in facts["feature_names"]], dtype=object)
        weights, classes = model_file.weights_in(tensors), len(facts["classes"])
        model.members_ = read_members(facts["members"], weights, model.n_features_in_, classes, architecture)
        model.seed_, model.notes_ = int(facts["seed"]), [str(note) for note in facts["notes"]]
        model.leaderboard_ = list(facts["leaderboard"])
        scaling = {name.removeprefix(SCALING): t for name, t in tensors.items() if name.startswith(SCALING)}
        model.scaling_ = FeatureScaling(**scaling) if scaling else None
        if model.scaling_ is not None and len(model.scaling_.mean) != model.n_features_in_:
            raise InvalidInput(f"it scales {len(model.scaling_.mean)} features, but has {model.n_features_in_}")
        model.structure_rule_ = int(facts.get("structure_rule", 1))
        columns = facts.get("columns")
        model.columns_ = None if columns is None else Encoding.from_dict(columns)
        run = model_file.run_in(path, tensors, facts, store)
        model.snapshot_, model.classes_, model.node_names_ = run.snapshot, np.array(run.classes), run.names
        if not model.history_:
            raise InvalidInput("it holds no row of any round; it was not written by bangs")
        model.n_iter_, model.termination_condition_ = int(facts["rounds"]), str(facts["ended"])
    return model
