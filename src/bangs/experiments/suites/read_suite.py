"""Read and check suite files (TOML); every error names the file and the key."""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from bangs.errors import BangsError, InvalidInput, UnknownName
from bangs.experiments.experiment import Experiment
from bangs.experiments.settings import RULES
from bangs.experiments.suites.find_suite import suite_text
from bangs.experiments.suites.published_numbers import published_numbers
from bangs.experiments.suites.schema import Content, first_problem
from bangs.experiments.suites.suite import FIGURES, Cell, Suite
from bangs.graphs.datasets.loading import npz_files
from bangs.graphs.datasets.urls import DATASETS
from bangs.graphs.store import is_store
from bangs.runs.history_rows import STAGES
from bangs.utils.limits import MAX_SEEDS
from bangs.utils.text import plain_name

Names = Literal["known", "any"]


def read_suite(path: Path, data: Path | None = None, names: Names = "known") -> Suite:
    """Read a suite file; an error names the file and the key.

    To run the suite, every dataset, method and part must be known on this machine. A table needs rows only, so it may
    read names of `any` kind: a method that a script added, a graph on another machine.
    """
    return parse_suite(suite_text(path), path.stem, str(path), data, names)


def parse_suite(text: str, name: str, source: str, data: Path | None = None, names: Names = "known") -> Suite:
    """Parse the text of a suite; error messages call it `source`."""
    if match := _TOO_MANY_PARTS.search(text):
        raise InvalidInput(
            f"{source}: the key {match[0][:40]}… has more than {MAX_KEY_PARTS} parts; a suite needs at most three"
        )
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, a number of thousands of digits, or nested too deep
        raise InvalidInput(f"{source} is not valid TOML: {error}") from error
    try:
        return _suite(name, Content.model_validate(content), _Settings(data, names))
    except (InvalidInput, ValidationError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error
        raise InvalidInput(f"{source}: {problem}") from error


MAX_KEY_PARTS = 16  # of a dotted key; the memory of tomllib grows with the square of this number
# as many parts with dots between them; possessive quantifiers keep the search linear in the length of the text
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_TOO_MANY_PARTS = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}\.[ \t]*+){{{MAX_KEY_PARTS}}}")
MAX_CELLS = 10_000
_SETTING_NAMES = {setting.name for setting in fields(Experiment)}
_PRINTED_NAMES = {"stages": STAGES, "rounds": ("round",)}  # column or axis names that a kind of suite prints

Axes = Mapping[str, tuple[Mapping[str, Any], ...]]


@dataclass(frozen=True)
class _Settings:
    """Reads and checks the settings of experiments in a file; an error names the key."""

    data: Path | None
    names: Names

    def read(self, key: str, value: Any, location: str) -> Any:
        """One setting, with the type that `Experiment` expects."""
        if key not in _SETTING_NAMES:
            raise InvalidInput(f"{location}: {UnknownName('setting', key, _SETTING_NAMES)}")
        if key == "seeds":
            if type(value) is int and not 0 < value <= MAX_SEEDS:
                raise InvalidInput(f"{location} must ask for 1 to {MAX_SEEDS} seeds, got {value}")
            value = tuple(range(value)) if type(value) is int else tuple(value) if isinstance(value, list) else value
        try:
            RULES[key](key, value)
            if key == "dataset":
                self._check_dataset(value)
        except BangsError as error:
            if not isinstance(error, UnknownName) or self.names == "known":
                raise InvalidInput(f"{location}: {error}") from error
        return value

    def axis(self, axis: str, values: Sequence[Any]) -> tuple[Mapping[str, Any], ...]:
        """The values of an axis: values of the setting with its name, or tables of several settings."""
        choices = []
        for n, value in enumerate(values):
            location = f"axes.{axis}[{n}]"
            if not isinstance(value, dict):
                if axis not in _SETTING_NAMES:
                    raise InvalidInput(f"axes.{axis}: {UnknownName('setting', axis, _SETTING_NAMES)}")
                choices.append({axis: self.read(axis, value, location)})
                continue
            if axis not in value:
                raise InvalidInput(f"{location} must say what it is called on the axis: add {axis} = …")
            settings = {key: item for key, item in value.items() if key != axis or axis in _SETTING_NAMES}
            choices.append(
                {**value, **{key: self.read(key, item, f"{location}.{key}") for key, item in settings.items()}}
            )
        return tuple(choices)

    def _check_dataset(self, name: str) -> None:
        known = {*DATASETS, *npz_files(self.data)}
        # a file may be missing until the run begins; a store must exist, or it would look like a name
        if not name.endswith(".npz") and not is_store(name) and name.lower().replace("-", "_") not in known:
            raise UnknownName("dataset", name, known)


def _suite(name: str, content: Content, settings: _Settings) -> Suite:
    """Build the suite; every key, setting and published number is checked."""
    experiment = {key: settings.read(key, value, f"experiment.{key}") for key, value in content.experiment.items()}
    axes = {axis: settings.axis(axis, values) for axis, values in content.axes.items()}
    _check_axes(axes)
    rows, columns = _layout(content, axes)
    title = content.title or name
    others = content.model_dump(exclude={"title", "rows", "columns", "experiment", "axes", "published"})
    suite = Suite(name=name, title=title, rows=rows, columns=columns, experiment=experiment, axes=axes, **others)
    cells = list(suite.cells())
    _check_distinct(suite, cells)
    for cell in cells if settings.names == "known" else ():
        try:
            cell.experiment.self_trainer()  # raises if the parts do not fit together
        except BangsError as error:
            run = ", ".join(f"{axis} = {value}" for axis, value in cell.coordinates.items())
            raise InvalidInput(f"the run with {run} is not possible: {error}") from error
    _check_names(suite, cells)
    if content.published is None:
        return suite
    published = published_numbers(content.published.model_extra or {}, content.kind, cells)
    return replace(suite, published=published, published_as=content.published.protocol)


def _check_axes(axes: Axes) -> None:
    """Raise if two axes with several values set the same setting."""
    if (count := math.prod(map(len, axes.values()))) > MAX_CELLS:
        raise InvalidInput(f"axes must span at most {MAX_CELLS} combinations, got {count}")
    owners: dict[str, str] = {}
    for axis, choices in axes.items():
        for setting in {key for choice in choices for key in choice} if len(choices) > 1 else ():
            if (other := owners.setdefault(setting, axis)) != axis:
                raise InvalidInput(f"axes.{axis} sets {setting}, which axes.{other} sets too; leave one out")


def _layout(content: Content, axes: Axes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The axes of the rows and of the columns; every axis with several values must be in one of them."""
    kind = content.kind
    rows = _named_axes(content.rows, "rows", axes, "method" if kind in FIGURES else "dataset")
    columns = _named_axes(content.columns, "columns", axes, "method" if kind in ("table", "time") else "")
    if content.rows is None:
        rows = tuple(axis for axis in rows if axis not in columns)
    if content.columns is None:
        columns = tuple(axis for axis in columns if axis not in rows)
    if kind in ("rounds", "stages") and columns:
        raise InvalidInput(f"columns must be left out, as a suite of {kind} has its own; put {columns[0]} into rows")
    if kind == "sweep" and len(columns) != 1:
        raise InvalidInput(f"columns must name the one axis a sweep runs along, got {list(columns)}")
    for n, choice in enumerate(axes[columns[0]] if kind == "sweep" else ()):
        if type(value := choice[columns[0]]) not in (int, float) or not abs(value) < 1e9:
            raise InvalidInput(f"axes.{columns[0]}[{n}] must be a number, as a sweep runs along it, got {value!r}")
    if repeated := [axis for axis, count in Counter((*rows, *columns)).items() if count > 1]:
        raise InvalidInput(
            f"{'columns' if repeated[0] in columns else 'rows'} must not name the axis {repeated[0]} again"
        )
    if unused := [axis for axis in axes if axis not in (*rows, *columns) and len(axes[axis]) > 1]:
        raise InvalidInput(f"axes.{unused[0]} has several values but is neither in rows nor in columns")
    return rows, columns


def _named_axes(value: str | list[str] | None, key: str, axes: Axes, default: str) -> tuple[str, ...]:
    """The axes that `rows` or `columns` names; if it is missing, the default axis if the suite has it."""
    if value is None:
        return (default,) if default in axes else ()
    names = [value] if isinstance(value, str) else value
    for name in names:
        if name not in axes:
            raise InvalidInput(f"{key}: {UnknownName('axis', name, axes)}")
    return tuple(names)


def _check_distinct(suite: Suite, cells: Sequence[Cell]) -> None:
    """Raise if two graphs, or two values of an axis, would have the same name in the table."""
    graphs: dict[str, str] = {}
    for graph in (cell.setting("dataset") for cell in cells):
        if (other := graphs.setdefault(plain_name(graph), graph)) != graph:
            raise InvalidInput(
                f"dataset names two graphs '{plain_name(graph)}', {other} and {graph}, which results could not tell "
                "apart; rename one of the files"
            )
    for axis, choices in suite.axes.items():
        positions: dict[str, int] = {}
        for n, choice in enumerate(choices):
            name = plain_name(str(choice[axis]))
            if (m := positions.setdefault(name, n)) != n:
                raise InvalidInput(
                    f"axes.{axis}[{n}] is called '{name}' like axes.{axis}[{m}], got {dict(choices[m])} and "
                    f"{dict(choice)}; leave one out, or give each a name: "
                    f'setting = [{{ setting = "one", {axis} = … }}, …]'
                )


def _check_names(suite: Suite, cells: Sequence[Cell]) -> None:
    """Raise if `focus`, `absent` or `names` names something that is not in the table."""
    rows, columns = {cell.row for cell in cells}, {cell.column for cell in cells}
    lines = rows if suite.kind in FIGURES else columns
    if suite.focus and suite.focus not in lines:
        raise InvalidInput(f"focus: {UnknownName('focus', suite.focus, lines)}")
    for row in suite.absent:
        if row not in rows:
            raise InvalidInput(f"absent.{row}: {UnknownName('row', row, rows)}")
    values = {plain_name(str(choice[axis])) for axis, choices in suite.axes.items() for choice in choices}
    known = {*suite.axes, *values, *_PRINTED_NAMES.get(suite.kind, ())}
    for name in suite.names:
        if name not in known:
            raise InvalidInput(f"names.{name}: {UnknownName('value or axis', name, known)}")
