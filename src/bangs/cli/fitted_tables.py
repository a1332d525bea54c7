"""FittedTables: where the tables of a fit lie and how they were read, kept beside it for `bangs label`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bangs.errors import BangsError, InvalidInput
from bangs.estimator import saved_parameters
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.graphs.store import read_user_graph
from bangs.graphs.tables import UserGraph
from bangs.graphs.tables.read_options import ReadOptions
from bangs.labelling.answers import read_answers, with_answers
from bangs.runs.sealed_json import seal, unseal

FILE = "tables.json"
_WORDS = ("ignore", "categorical", "unknown", "keep")  # options that are lists of words
_DEFAULTS = {own.name: own.default for own in fields(ReadOptions) if own.name not in ("encoding", "limits")}
_NOT_KEPT = ("device", "directed", "time_limit")  # given anew by every command, or by the tables


@dataclass(frozen=True)
class FittedTables:
    """The tables of a fit, the options they were read with, and the settings of the classifier."""

    path: Path
    options: Mapping[str, Any]  # of `ReadOptions`, those that differ from the defaults
    labels: tuple[Path, ...] = ()  # files of `bangs label` whose labels were added, in this order

    @classmethod
    def of(cls, path: Path, options: Mapping[str, Any], *labels: Path) -> "FittedTables":
        """Tables as they are read now."""
        return cls(path.resolve(), {}).also(options, *labels)

    def also(self, options: Mapping[str, Any], *labels: Path) -> "FittedTables":
        """The same tables read with more options, and with more labels."""
        more = [own for own in map(Path.resolve, labels) if own not in self.labels]
        return FittedTables(self.path, {**self.options, **_given(options)}, (*self.labels, *more))

    def read(self) -> UserGraph:
        """The graph, with all labels that were added to it."""
        own = read_user_graph(self.path, **self.options)
        for file in self.labels:
            own = with_answers(own, read_answers(file))
        return own

    def write(self, folder: Path, learner: SelfTrainingClassifier) -> None:
        """Keep them in the folder of the fit; paths are relative to it, so both can be moved together."""
        params = {name: value for name, value in learner.get_params(deep=False).items() if name not in _NOT_KEPT}
        here = folder.resolve()
        note = {
            "path": os.path.relpath(self.path, here),
            "labels": [os.path.relpath(file, here) for file in self.labels],
            "options": {name: list(own) if name in _WORDS else own for name, own in self.options.items()},
            "learner": {name: saved_parameters.to_json(value) for name, value in params.items()},
        }
        if unseal(folder / FILE) != note:
            seal(folder / FILE, note)


def read_fitted_tables(folder: Path) -> tuple[FittedTables, dict[str, Any]]:
    """The tables of the fit in a folder, and the settings of its classifier; raises where the tables are not there."""
    file = folder / FILE
    found = unseal(file)
    if found is None:
        raise InvalidInput(
            f"'{folder}' does not say which tables it was fitted on (it holds no {FILE}); give them: bangs label TABLES"
        )
    try:
        path, *labels = [_place(folder, name) for name in (found["path"], *found["labels"])]
        options = {str(name): _option(str(name), value) for name, value in found["options"].items()}
        learner = {str(name): saved_parameters.from_json(name, own, {}) for name, own in found["learner"].items()}
        SelfTrainingClassifier(**learner).recipe()
    except (BangsError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidInput(f"'{file}' is not as `bangs fit` writes it ({error}); give the tables instead") from error
    for place in (path, *labels):
        if not place.exists():
            raise InvalidInput(
                f"'{folder}' was fitted on '{place}', which is not there any more; "
                "put it back, or give the tables where they are now: bangs label TABLES"
            )
    return FittedTables(path, options, tuple(labels)), learner


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value != _DEFAULTS[name] and value not in (None, [])}


def _place(folder: Path, name: Any) -> Path:
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInput("a path must be a word")
    return Path(os.path.normpath(folder.resolve() / name))


def _option(name: str, value: Any) -> Any:
    """The value of an option, of the type it must have."""
    if name in _WORDS:
        sound = isinstance(value, list) and all(isinstance(word, str) for word in value)
    else:
        sound = type(value) is (str if _DEFAULTS[name] is None else type(_DEFAULTS[name]))
    if not sound:
        raise InvalidInput(f"option {name!r}")
    return tuple(value) if name in _WORDS else value
