"""FittedTables: the paths and read options of the tables of a fit, saved in its folder for `bangs label`."""

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
from bangs.runs.checksummed_json import read_checksummed, write_checksummed

FILE = "tables.json"
_LIST_OPTIONS = ("ignore", "categorical", "unknown", "keep")
_DEFAULTS = {option.name: option.default for option in fields(ReadOptions) if option.name not in ("encoding", "limits")}
_NOT_SAVED = ("device", "directed", "time_limit")  # set by every command, or by the tables


@dataclass(frozen=True)
class FittedTables:
    """The tables of a fit, the options they were read with, and the settings of the classifier."""

    path: Path
    options: Mapping[str, Any]  # of `ReadOptions`, those that differ from the defaults
    labels: tuple[Path, ...] = ()  # files of `bangs label` whose labels were added, in this order

    @classmethod
    def of(cls, path: Path, options: Mapping[str, Any], *labels: Path) -> "FittedTables":
        """The tables at a path with these options and labels."""
        return cls(path.resolve(), {}).also(options, *labels)

    def also(self, options: Mapping[str, Any], *labels: Path) -> "FittedTables":
        """The same tables with more options and more labels."""
        more = [path for path in map(Path.resolve, labels) if path not in self.labels]
        given = {key: value for key, value in options.items() if value != _DEFAULTS[key] and value not in (None, [])}
        return FittedTables(self.path, {**self.options, **given}, (*self.labels, *more))

    def read(self) -> UserGraph:
        """Read the graph, and add the labels of all label files."""
        graph = read_user_graph(self.path, **self.options)
        for file in self.labels:
            graph = with_answers(graph, read_answers(file))
        return graph

    def write(self, folder: Path, classifier: SelfTrainingClassifier) -> None:
        """Save the paths and options in the folder of the fit; paths are relative, so both can be moved together."""
        params = {name: value for name, value in classifier.get_params(deep=False).items() if name not in _NOT_SAVED}
        base = folder.resolve()
        content = {
            "path": os.path.relpath(self.path, base),
            "labels": [os.path.relpath(file, base) for file in self.labels],
            "options": {name: list(value) if name in _LIST_OPTIONS else value for name, value in self.options.items()},
            "learner": {name: saved_parameters.to_json(value) for name, value in params.items()},
        }
        if read_checksummed(folder / FILE) != content:
            write_checksummed(folder / FILE, content)


def read_fitted_tables(folder: Path) -> tuple[FittedTables, dict[str, Any]]:
    """The tables of the fit in a folder, and the settings of its classifier; raises if the tables do not exist."""
    file = folder / FILE
    content = read_checksummed(file)
    if content is None:
        raise InvalidInput(
            f"'{folder}' does not say which tables it was fitted on (it holds no {FILE}); give them: bangs label TABLES"
        )
    try:
        path, *labels = [_resolve(folder, name) for name in (content["path"], *content["labels"])]
        options = {str(name): _option(str(name), value) for name, value in content["options"].items()}
        learner = {"class_weight": None, **content["learner"]}  # fits of earlier versions had no class weights
        parameters = {str(name): saved_parameters.from_json(name, value, {}) for name, value in learner.items()}
        SelfTrainingClassifier(**parameters).build_candidates()
    except (BangsError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidInput(f"'{file}' is not as `bangs fit` writes it ({error}); give the tables instead") from error
    for missing in (path, *labels):
        if not missing.exists():
            raise InvalidInput(
                f"'{folder}' was fitted on '{missing}', which is not there any more; "
                "put it back, or give the tables where they are now: bangs label TABLES"
            )
    return FittedTables(path, options, tuple(labels)), parameters


def _resolve(folder: Path, name: Any) -> Path:
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInput("a path must be text")
    return Path(os.path.normpath(folder.resolve() / name))


def _option(name: str, value: Any) -> Any:
    """The value of an option; raises if it has the wrong type."""
    if name in _LIST_OPTIONS:
        valid = isinstance(value, list) and all(isinstance(item, str) for item in value)
    else:
        valid = type(value) is (str if _DEFAULTS[name] is None else type(_DEFAULTS[name]))
    if not valid:
        raise InvalidInput(f"option {name!r}")
    return tuple(value) if name in _LIST_OPTIONS else value
