"""Suite: the experiments behind one table or figure, and how they are laid out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

from bangs.experiments.experiment import Experiment
from bangs.experiments.settings import RULES
from bangs.utils.text import plain_name

FIGURES = ("sweep", "rounds")  # kinds that are drawn
TIMED = ("time", "stages")  # kinds that tell seconds

Kind = Literal["table", "time", "stages", "sweep", "rounds"]


@dataclass(frozen=True)
class Published:
    """What the source gives for a cell: mean, or mean and standard deviation, or one number a stage; and its mark."""

    numbers: tuple[float, ...]
    stars: str = ""


@dataclass(frozen=True)
class Cell:
    """A place in the table or figure, and the experiment that fills it."""

    row: str
    column: str
    place: Mapping[str, Any]  # axis -> value
    settings: Mapping[str, Any]  # of the experiment, those that are not as usual

    @property
    def experiment(self) -> Experiment:
        """The experiment itself, whose every name must be known here; rows are found by settings alone."""
        return Experiment(**self.settings)

    def setting(self, name: str) -> Any:
        """One setting of the experiment, the default if the suite does not set it."""
        return self.settings.get(name, getattr(Experiment, name))


@dataclass(frozen=True)
class Suite:
    """Experiments along axes, how they are laid out, and what was published."""

    name: str
    title: str
    kind: Kind
    rows: tuple[str, ...]  # axes down the table; of a figure, the lines
    columns: tuple[str, ...]  # axes along the table; of a sweep, the x axis
    experiment: Mapping[str, Any]  # settings common to all
    axes: Mapping[str, tuple[Mapping[str, Any], ...]]  # axis -> its values, each a set of settings
    protocols: tuple[str, ...] = ("validation", "best_test")
    blind: bool = False  # whether its runs open no test label; `bangs unblind` opens them
    focus: str | None = None  # the column, or line, whose lead over the others is tested
    names: Mapping[str, str] = field(default_factory=dict)  # as people call them
    published: Mapping[tuple[str, str], Published] = field(default_factory=dict)  # (row, column) -> numbers
    published_as: str = ""  # the rule behind the published numbers
    absent: Mapping[str, str] = field(default_factory=dict)  # row -> why it was not run
    about: str = ""
    reading: str = ""

    def cells(
        self, wanted: Mapping[str, Sequence[str] | None] | None = None, seeds: Sequence[int] | None = None
    ) -> Iterator[Cell]:
        """Every combination of the axes, or those with the wanted values: setting -> its values, None = all."""
        ordered = sorted(self.axes, key=lambda axis: len(self.axes[axis]) > 1)  # one value is what is common to all
        for chosen in product(*self.axes.values()):
            settings = dict(self.experiment)
            picked = dict(zip(self.axes, chosen, strict=True))
            for axis in ordered:
                settings |= {key: value for key, value in picked[axis].items() if key in RULES}
            if seeds is not None:
                settings["seeds"] = tuple(seeds)
            place = {axis: choice[axis] for axis, choice in picked.items()}
            cell = Cell(_key(self.rows, place), _key(self.columns, place), place, settings)
            if all(
                values is None or plain_name(cell.setting(key)) in map(plain_name, values)
                for key, values in (wanted or {}).items()
            ):
                yield cell

    def called(self, key: str) -> str:
        """A row, column or value as people call it."""
        return " · ".join(self.names.get(part, plain_name(part)) for part in key.split("/"))

    def values(self, setting: str) -> set[str]:
        """The values a setting takes in the suite."""
        return {plain_name(cell.setting(setting)) for cell in self.cells()}


def _key(axes: Sequence[str], place: Mapping[str, Any]) -> str:
    return "/".join(plain_name(str(place[axis])) for axis in axes)
