"""Suite files: TOML in, a checked suite out; every mistake is a sentence that names file and key."""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

from bangs.errors import BangsError, InvalidInput, UnknownName
from bangs.experiments.experiment import Experiment
from bangs.experiments.settings import check
from bangs.experiments.suites.content import Content, Faults, check_content
from bangs.experiments.suites.files import suite_path, suite_text
from bangs.experiments.suites.published_numbers import published_numbers
from bangs.experiments.suites.suite import FIGURES, Cell, Suite
from bangs.graphs.datasets.by_name import DATASETS, npz_files
from bangs.graphs.store import is_store
from bangs.runs.history import STAGES
from bangs.utils.text import plain_name

NodeNames = Literal["known", "any"]


def find_suite(
    name: str, data: Path | None = None, names: NodeNames = "known", beside: Mapping[str, Path] | None = None
) -> Suite:
    """The suite of a name, or of a path to a file; `beside` are others that have names, and come first."""
    return read_suite(suite_path(name, beside), data, names)


def read_suite(path: Path, data: Path | None = None, names: NodeNames = "known") -> Suite:
    """The suite in a file; a mistake is a sentence that names file and key.

    To do its runs, every dataset, method and part must be known here. A table needs rows only, so for one the names may
    be `any`: those of a method that a script gave, of a graph on another machine.
    """
    return parse_suite(suite_text(path), path.stem, str(path), data, names)


def parse_suite(text: str, name: str, source: str, data: Path | None = None, names: NodeNames = "known") -> Suite:
    """The suite in a text; `source` is what the sentences call it."""
    if deep := _DEEP.search(text):
        raise InvalidInput(
            f"{source}: the key {deep[0][:40]}… has more than {DEEPEST} parts; a suite needs at most three"
        )
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, a number of thousands of digits, or nested too deep
        raise InvalidInput(f"{source} is not valid TOML: {error}") from error
    reader = _Reader(source, data, names)
    return reader.suite(name, content)


DEEPEST = 16  # parts of a dotted key: tomllib takes memory by the square of them
# so many parts and dots in a row; possessive, so that a long text takes no longer than its length
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_DEEP = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}\.[ \t]*+){{{DEEPEST}}}")
MOST_SEEDS = 10_000
MOST_CELLS = 10_000
_SETTINGS = {own.name for own in fields(Experiment)}
_OWN_WORDS = {"stages": STAGES, "rounds": ("round",)}  # that a kind prints


class _Reader(Faults):
    """Turns the content of a file into a suite, key by key."""

    def __init__(self, source: str, data: Path | None, names: NodeNames):
        super().__init__(source)
        self.data, self.names = data, names

    def suite(self, name: str, content: dict[str, Any]) -> Suite:
        """The suite, every key, setting and published number checked."""
        file = check_content(content, self)
        experiment = {key: self._setting(key, value, f"experiment.{key}") for key, value in file.experiment.items()}
        axes = self._axes(file.axes)
        rows, columns = self._laid_out(file, axes)
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
        cells = self._cells(made)
        self._check_names(made, cells)
        if file.published is None:
            return made
        published = published_numbers(file.published.rows, file.kind, cells, self)
        return replace(made, published=published, published_as=file.published.protocol)

    def _laid_out(self, file: Content, axes: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The axes down and along; every one with several values must be in rows or columns."""
        kind = file.kind
        rows = self._layout(file.rows, "rows", axes, ("method",) if kind in FIGURES else ("dataset",))
        columns = self._layout(file.columns, "columns", axes, ("method",) if kind in ("table", "time") else ())
        if file.rows is None:
            rows = tuple(axis for axis in rows if axis not in columns)
        if file.columns is None:
            columns = tuple(axis for axis in columns if axis not in rows)
        if kind in ("rounds", "stages") and columns:
            raise self.wrong(
                "columns", f"must be left out, as a suite of {kind} has its own; put {columns[0]} into rows"
            )
        if kind == "sweep" and len(columns) != 1:
            raise self.wrong("columns", f"must name the one axis a sweep runs along, got {list(columns)}")
        for n, choice in enumerate(axes[columns[0]] if kind == "sweep" else ()):
            if type(value := choice[columns[0]]) not in (int, float) or not abs(value) < 1e9:
                raise self.wrong(
                    f"axes.{columns[0]}[{n}]", f"must be a number, as a sweep runs along it, got {value!r}"
                )
        if twice := [axis for axis, count in Counter((*rows, *columns)).items() if count > 1]:
            raise self.wrong("columns" if twice[0] in columns else "rows", f"must not name the axis {twice[0]} again")
        if left := [axis for axis in axes if axis not in (*rows, *columns) and len(axes[axis]) > 1]:
            raise self.wrong(f"axes.{left[0]}", "has several values but is neither in rows nor in columns")
        return rows, columns

    def _check_names(self, suite: Suite, cells: Sequence[Cell]) -> None:
        """Raise where the focus, a row said to be absent, or what has a name in print is nowhere in the table."""
        rows, columns = {cell.row for cell in cells}, {cell.column for cell in cells}
        lines = rows if suite.kind in FIGURES else columns
        if suite.focus is not None and suite.focus not in lines:
            raise self.unknown("focus", suite.focus, lines, "focus")
        for row in suite.absent:
            if row not in rows:
                raise self.unknown("row", row, rows, f"absent.{row}")
        values = {plain_name(str(choice[axis])) for axis, choices in suite.axes.items() for choice in choices}
        known = {*suite.axes, *values, *_OWN_WORDS.get(suite.kind, ())}
        for name in suite.names:
            if name not in known:
                raise self.unknown("value or axis", name, known, f"names.{name}")

    def _cells(self, suite: Suite) -> list[Cell]:
        cells = list(suite.cells())
        self._check_told_apart(suite, cells)
        for cell in cells if self.names == "known" else ():
            try:
                cell.experiment.self_trainer()  # which puts the parts together
            except BangsError as error:
                run = ", ".join(f"{axis} = {value}" for axis, value in cell.place.items())
                raise InvalidInput(f"{self.source}: the run with {run} is not possible: {error}") from error
        return cells

    def _check_told_apart(self, suite: Suite, cells: Sequence[Cell]) -> None:
        """Raise where two graphs, or two values of an axis, would be one in the table."""
        graphs: dict[str, str] = {}
        for graph in (cell.setting("dataset") for cell in cells):
            if (other := graphs.setdefault(plain_name(graph), graph)) != graph:
                rule = (
                    f"names two graphs '{plain_name(graph)}', {other} and {graph}, which results could not tell apart"
                )
                raise self.wrong("dataset", f"{rule}; rename one of the files")
        for axis, choices in suite.axes.items():
            places: dict[str, int] = {}
            for n, choice in enumerate(choices):
                name = plain_name(str(choice[axis]))
                if (m := places.setdefault(name, n)) != n:
                    rule = f"is called '{name}' like axes.{axis}[{m}], got {dict(choices[m])} and {dict(choice)}"
                    way = f'leave one out, or give each a name: setting = [{{ setting = "one", {axis} = … }}, …]'
                    raise self.wrong(f"axes.{axis}[{n}]", f"{rule}; {way}")

    def _setting(self, key: str, value: Any, place: str) -> Any:
        if key not in _SETTINGS:
            raise self.unknown("setting", key, _SETTINGS, place)
        if key == "seeds":
            if type(value) is int and not 0 < value <= MOST_SEEDS:
                raise self.wrong(place, f"must ask for 1 to {MOST_SEEDS} seeds, got {value}")
            value = tuple(range(value)) if type(value) is int else tuple(value) if isinstance(value, list) else value
        try:
            check(key, value)
            if key == "dataset":
                self._dataset(value)
        except BangsError as error:
            if isinstance(error, UnknownName) and self.names == "any":
                return value
            raise InvalidInput(f"{self.source}: {place}: {error}") from error
        return value

    def _dataset(self, name: str) -> None:
        known = {*DATASETS, *npz_files(self.data)}
        # a file may be missing until the run begins; a store must exist, or it would look like a name
        if not name.endswith(".npz") and not is_store(name) and name.lower().replace("-", "_") not in known:
            raise UnknownName("dataset", name, known)

    def _axes(self, content: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Mapping[str, Any], ...]]:
        axes: dict[str, tuple[Mapping[str, Any], ...]] = {
            axis: tuple(self._choice(axis, value, f"axes.{axis}[{n}]") for n, value in enumerate(values))
            for axis, values in content.items()
        }
        if (count := math.prod(map(len, axes.values()))) > MOST_CELLS:
            raise self.wrong("axes", f"must span at most {MOST_CELLS} combinations, got {count}")
        self._check_apart(axes)
        return axes

    def _check_apart(self, axes: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Raise where two axes of several values set the same thing: a run would not be what its place says."""
        owners: dict[str, str] = {}
        for axis, choices in axes.items():
            for setting in {key for choice in choices for key in choice} if len(choices) > 1 else ():
                if (other := owners.setdefault(setting, axis)) != axis:
                    raise self.wrong(f"axes.{axis}", f"sets {setting}, which axes.{other} sets too; leave one out")

    def _choice(self, axis: str, value: Any, place: str) -> dict[str, Any]:
        """One value of an axis: of the setting it is named after, or a table of settings with a name of its own."""
        if not isinstance(value, dict):
            if axis not in _SETTINGS:
                raise self.unknown("setting", axis, _SETTINGS, f"axes.{axis}")
            return {axis: self._setting(axis, value, place)}
        if axis not in value:
            raise self.wrong(place, f"must say what it is called on the axis: add {axis} = …")
        return {
            key: item if key == axis and axis not in _SETTINGS else self._setting(key, item, f"{place}.{key}")
            for key, item in value.items()
        }

    def _layout(
        self, value: str | list[str] | None, key: str, axes: Mapping[str, Any], default: tuple[str, ...]
    ) -> tuple[str, ...]:
        if value is None:
            return tuple(axis for axis in default if axis in axes)
        names = [value] if isinstance(value, str) else value
        for name in names:
            if name not in axes:
                raise self.unknown("axis", name, axes, key)
        return tuple(names)
