"""Suite files: TOML in, a checked suite out; every mistake is a sentence that names file and key."""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from bangs.errors import BangsError, InvalidInput, UnknownName
from bangs.experiments.experiment import Experiment
from bangs.experiments.settings import check
from bangs.experiments.suites.content import Content, check_content
from bangs.experiments.suites.files import suite_path, suite_text
from bangs.experiments.suites.published_numbers import published_numbers
from bangs.experiments.suites.suite import FIGURES, Cell, Suite
from bangs.graphs.datasets.by_name import DATASETS, npz_files
from bangs.graphs.store import is_store
from bangs.runs.history import STAGES
from bangs.utils.text import plain_name

Names = Literal["known", "any"]


def find_suite(
    name: str, data: Path | None = None, names: Names = "known", beside: Mapping[str, Path] | None = None
) -> Suite:
    """The suite of a name, or of a path to a file; `beside` are others that have names, and come first."""
    return read_suite(suite_path(name, beside), data, names)


def read_suite(path: Path, data: Path | None = None, names: Names = "known") -> Suite:
    """The suite in a file; a mistake is a sentence that names file and key.

    To do its runs, every dataset, method and part must be known here. A table needs rows only, so for one the names may
    be `any`: those of a method that a script gave, of a graph on another machine.
    """
    return parse_suite(suite_text(path), path.stem, str(path), data, names)


def parse_suite(text: str, name: str, source: str, data: Path | None = None, names: Names = "known") -> Suite:
    """The suite in a text; `source` is what the sentences call it."""
    if deep := _DEEP.search(text):
        raise InvalidInput(
            f"{source}: the key {deep[0][:40]}… has more than {DEEPEST} parts; a suite needs at most three"
        )
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, a number of thousands of digits, or nested too deep
        raise InvalidInput(f"{source} is not valid TOML: {error}") from error
    try:
        return _suite(name, check_content(content), _Settings(data, names))
    except InvalidInput as error:
        raise InvalidInput(f"{source}: {error}") from error


DEEPEST = 16  # parts of a dotted key: tomllib takes memory by the square of them
# so many parts and dots in a row; possessive, so that a long text takes no longer than its length
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_DEEP = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}\.[ \t]*+){{{DEEPEST}}}")
MOST_SEEDS = 10_000
MOST_CELLS = 10_000
_FIELDS = {own.name for own in fields(Experiment)}
_OWN_WORDS = {"stages": STAGES, "rounds": ("round",)}  # that a kind prints

Axes = Mapping[str, tuple[Mapping[str, Any], ...]]


@dataclass(frozen=True)
class _Settings:
    """Reads the settings of experiments in a file; raises, with its place there, where one is wrong."""

    data: Path | None
    names: Names

    def read(self, key: str, value: Any, place: str) -> Any:
        """One setting as an experiment has it."""
        if key not in _FIELDS:
            raise InvalidInput(f"{place}: {UnknownName('setting', key, _FIELDS)}")
        if key == "seeds":
            if type(value) is int and not 0 < value <= MOST_SEEDS:
                raise InvalidInput(f"{place} must ask for 1 to {MOST_SEEDS} seeds, got {value}")
            value = tuple(range(value)) if type(value) is int else tuple(value) if isinstance(value, list) else value
        try:
            check(key, value)
            if key == "dataset":
                self._check_dataset(value)
        except BangsError as error:
            if not isinstance(error, UnknownName) or self.names == "known":
                raise InvalidInput(f"{place}: {error}") from error
        return value

    def axis(self, axis: str, values: Sequence[Any]) -> tuple[Mapping[str, Any], ...]:
        """The values of an axis: of the setting it is named after, or tables of settings with a name of their own."""
        choices = []
        for n, value in enumerate(values):
            place = f"axes.{axis}[{n}]"
            if not isinstance(value, dict):
                if axis not in _FIELDS:
                    raise InvalidInput(f"axes.{axis}: {UnknownName('setting', axis, _FIELDS)}")
                choices.append({axis: self.read(axis, value, place)})
                continue
            if axis not in value:
                raise InvalidInput(f"{place} must say what it is called on the axis: add {axis} = …")
            settings = {key: own for key, own in value.items() if key != axis or axis in _FIELDS}
            choices.append({**value, **{key: self.read(key, own, f"{place}.{key}") for key, own in settings.items()}})
        return tuple(choices)

    def _check_dataset(self, name: str) -> None:
        known = {*DATASETS, *npz_files(self.data)}
        # a file may be missing until the run begins; a store must exist, or it would look like a name
        if not name.endswith(".npz") and not is_store(name) and name.lower().replace("-", "_") not in known:
            raise UnknownName("dataset", name, known)


def _suite(name: str, file: Content, settings: _Settings) -> Suite:
    """The suite, every key, setting and published number checked."""
    experiment = {key: settings.read(key, value, f"experiment.{key}") for key, value in file.experiment.items()}
    axes = {axis: settings.axis(axis, values) for axis, values in file.axes.items()}
    _check_axes(axes)
    rows, columns = _layout(file, axes)
    made = Suite(
        name=name,
        title=file.title or name,
        kind=file.kind,
        rows=rows,
        columns=columns,
        experiment=experiment,
        axes=axes,
        protocols=tuple(file.protocols),
        blind=file.blind,
        focus=file.focus or None,
        names=file.names,
        absent=file.absent,
        about=file.about.strip(),
        reading=file.reading.strip(),
    )
    cells = list(made.cells())
    _check_told_apart(made, cells)
    for cell in cells if settings.names == "known" else ():
        try:
            cell.experiment.self_trainer()  # which puts the parts together
        except BangsError as error:
            run = ", ".join(f"{axis} = {value}" for axis, value in cell.place.items())
            raise InvalidInput(f"the run with {run} is not possible: {error}") from error
    _check_names(made, cells)
    if file.published is None:
        return made
    published = published_numbers(file.published.rows, file.kind, cells)
    return replace(made, published=published, published_as=file.published.protocol)


def _check_axes(axes: Axes) -> None:
    """Raise where two axes of several values set the same thing: a run would not be what its place says."""
    if (count := math.prod(map(len, axes.values()))) > MOST_CELLS:
        raise InvalidInput(f"axes must span at most {MOST_CELLS} combinations, got {count}")
    owners: dict[str, str] = {}
    for axis, choices in axes.items():
        for setting in {key for choice in choices for key in choice} if len(choices) > 1 else ():
            if (other := owners.setdefault(setting, axis)) != axis:
                raise InvalidInput(f"axes.{axis} sets {setting}, which axes.{other} sets too; leave one out")


def _layout(file: Content, axes: Axes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The axes down and along; every one with several values must be in rows or columns."""
    kind = file.kind
    rows = _named_axes(file.rows, "rows", axes, "method" if kind in FIGURES else "dataset")
    columns = _named_axes(file.columns, "columns", axes, "method" if kind in ("table", "time") else "")
    if file.rows is None:
        rows = tuple(axis for axis in rows if axis not in columns)
    if file.columns is None:
        columns = tuple(axis for axis in columns if axis not in rows)
    if kind in ("rounds", "stages") and columns:
        raise InvalidInput(f"columns must be left out, as a suite of {kind} has its own; put {columns[0]} into rows")
    if kind == "sweep" and len(columns) != 1:
        raise InvalidInput(f"columns must name the one axis a sweep runs along, got {list(columns)}")
    for n, choice in enumerate(axes[columns[0]] if kind == "sweep" else ()):
        if type(value := choice[columns[0]]) not in (int, float) or not abs(value) < 1e9:
            raise InvalidInput(f"axes.{columns[0]}[{n}] must be a number, as a sweep runs along it, got {value!r}")
    if twice := [axis for axis, count in Counter((*rows, *columns)).items() if count > 1]:
        raise InvalidInput(f"{'columns' if twice[0] in columns else 'rows'} must not name the axis {twice[0]} again")
    if left := [axis for axis in axes if axis not in (*rows, *columns) and len(axes[axis]) > 1]:
        raise InvalidInput(f"axes.{left[0]} has several values but is neither in rows nor in columns")
    return rows, columns


def _named_axes(value: str | list[str] | None, key: str, axes: Axes, default: str) -> tuple[str, ...]:
    """The axes that `rows` or `columns` names, else the default one if there is such an axis."""
    if value is None:
        return (default,) if default in axes else ()
    names = [value] if isinstance(value, str) else value
    for name in names:
        if name not in axes:
            raise InvalidInput(f"{key}: {UnknownName('axis', name, axes)}")
    return tuple(names)


def _check_told_apart(suite: Suite, cells: Sequence[Cell]) -> None:
    """Raise where two graphs, or two values of an axis, would be one in the table."""
    graphs: dict[str, str] = {}
    for graph in (cell.setting("dataset") for cell in cells):
        if (other := graphs.setdefault(plain_name(graph), graph)) != graph:
            raise InvalidInput(
                f"dataset names two graphs '{plain_name(graph)}', {other} and {graph}, which results could not tell "
                "apart; rename one of the files"
            )
    for axis, choices in suite.axes.items():
        places: dict[str, int] = {}
        for n, choice in enumerate(choices):
            name = plain_name(str(choice[axis]))
            if (m := places.setdefault(name, n)) != n:
                raise InvalidInput(
                    f"axes.{axis}[{n}] is called '{name}' like axes.{axis}[{m}], got {dict(choices[m])} and "
                    f"{dict(choice)}; leave one out, or give each a name: "
                    f'setting = [{{ setting = "one", {axis} = … }}, …]'
                )


def _check_names(suite: Suite, cells: Sequence[Cell]) -> None:
    """Raise where the focus, a row said to be absent, or what has a name in print is nowhere in the table."""
    rows, columns = {cell.row for cell in cells}, {cell.column for cell in cells}
    lines = rows if suite.kind in FIGURES else columns
    if suite.focus is not None and suite.focus not in lines:
        raise InvalidInput(f"focus: {UnknownName('focus', suite.focus, lines)}")
    for row in suite.absent:
        if row not in rows:
            raise InvalidInput(f"absent.{row}: {UnknownName('row', row, rows)}")
    values = {plain_name(str(choice[axis])) for axis, choices in suite.axes.items() for choice in choices}
    known = {*suite.axes, *values, *_OWN_WORDS.get(suite.kind, ())}
    for name in suite.names:
        if name not in known:
            raise InvalidInput(f"names.{name}: {UnknownName('value or axis', name, known)}")
