"""Suite: the experiments behind one table or figure, and how they are laid out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

from bangs.experiments.experiment import Experiment
from bangs.experiments.settings import RULES
from bangs.utils.text import plain_name

FIGURES = ("sweep", "rounds")  # kinds that are drawn
TIMED = ("time", "stages")  # kinds that show seconds

Kind = Literal["table", "time", "stages", "sweep", "rounds"]


@dataclass(frozen=True)
class Published:
    """The published numbers of a cell: a mean, a mean and a standard deviation, or one number per stage."""

    numbers: tuple[float, ...]
    stars: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell of the table or figure, and its experiment."""

    row: str
    column: str
    coordinates: Mapping[str, Any]  # axis -> value
    settings: Mapping[str, Any]  # of the experiment, those that differ from the defaults

    @property
    def experiment(self) -> Experiment:
        """The experiment; every dataset, method and part must be known on this machine."""
        return Experiment(**self.settings)

    def setting(self, name: str) -> Any:
        """One setting of the experiment, or its default if the suite does not set it."""
        return self.settings.get(name, getattr(Experiment, name))


@dataclass(frozen=True)
class Suite:
    """Experiments along axes, their layout, and the published numbers."""

    name: str
    title: str
    kind: Kind
    rows: tuple[str, ...]  # axes of the rows; in a figure, of the lines
    columns: tuple[str, ...]  # axes of the columns; in a sweep, the x axis
    experiment: Mapping[str, Any]  # settings common to all
    axes: Mapping[str, tuple[Mapping[str, Any], ...]]  # axis -> its values, each a set of settings
    protocols: Sequence[str] = ("validation", "best_test")
    blind: bool = False  # whether its runs open no test label; `bangs unblind` opens them
    focus: str = ""  # the column, or line, that is tested against all others
    names: Mapping[str, str] = field(default_factory=dict)  # value or axis -> display name
    published: Mapping[tuple[str, str], Published] = field(default_factory=dict)  # (row, column) -> numbers
    published_as: str = ""  # the rule behind the published numbers
    absent: Mapping[str, str] = field(default_factory=dict)  # row -> why it was not run
    about: str = ""
    reading: str = ""

    def cells(
        self, wanted: Mapping[str, Sequence[str] | None] | None = None, seeds: Sequence[int] | None = None
    ) -> Iterator[Cell]:
        """All combinations of the axes, or those in `wanted` (setting -> values, None = all)."""
        ordered = sorted(self.axes, key=lambda axis: len(self.axes[axis]) > 1)  # axes with one value first
        for chosen in product(*self.axes.values()):
            settings = dict(self.experiment)
            picked = dict(zip(self.axes, chosen, strict=True))
            for axis in ordered:
                settings |= {key: value for key, value in picked[axis].items() if key in RULES}
            if seeds is not None:
                settings["seeds"] = tuple(seeds)
            coordinates = {axis: choice[axis] for axis, choice in picked.items()}
            cell = Cell(_key(self.rows, coordinates), _key(self.columns, coordinates), coordinates, settings)
            if all(
                values is None or plain_name(cell.setting(key)) in map(plain_name, values)
                for key, values in (wanted or {}).items()
            ):
                yield cell

    def called(self, key: str) -> str:
        """The display name of a row, column or value."""
        return " · ".join(self.names.get(part, plain_name(part)) for part in key.split("/"))

    def values(self, setting: str) -> set[str]:
        """The values a setting takes in the suite."""
        return {plain_name(cell.setting(setting)) for cell in self.cells()}


def _key(axes: Sequence[str], coordinates: Mapping[str, Any]) -> str:
    return "/".join(plain_name(str(coordinates[axis])) for axis in axes)
