"""Encoding: how columns of a table became features, so that another table can be read alike."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bangs.errors import InvalidInput
from bangs.graphs.tables.dates import FORMATS


@dataclass(frozen=True)
class Numeric:
    """A column of numbers: feature = (value − mean) / scale, or value / scale if it is not centred."""

    name: str
    mean: float  # stands for a missing number, too
    scale: float
    centred: bool = True

    @property
    def features(self) -> list[str]:
        return [self.name]


@dataclass(frozen=True)
class Categorical:
    """A column of words: one feature per level, 1 where the cell holds it, and one for all other words if `other`."""

    name: str
    levels: tuple[str, ...]
    other: bool = False

    @property
    def features(self) -> list[str]:
        names = [f"{self.name}={level}" for level in self.levels]
        return [*names, f"{self.name}=(other)"] if self.other else names


@dataclass(frozen=True)
class Date:
    """A column of dates: (days since 1970 − mean) / scale, and sine and cosine of the time of year if `yearly`."""

    name: str
    mean: float
    scale: float
    form: str  # one of `dates.FORMATS`
    yearly: bool = False

    @property
    def features(self) -> list[str]:
        return [self.name, *([f"{self.name} (sin of year)", f"{self.name} (cos of year)"] if self.yearly else [])]


Column = Numeric | Categorical | Date


@dataclass(frozen=True)
class Structural:
    """Features made from the edges alone, centred and scaled like numbers."""

    seed: int
    means: tuple[float, ...]
    scales: tuple[float, ...]

    @property
    def features(self) -> list[str]:
        return ["degree", "log degree", *(f"place {i}" for i in range(len(self.means) - 2))]


@dataclass(frozen=True)
class Encoding:
    """What is needed to read another graph like the first; goes to JSON and back."""

    columns: tuple[Column, ...] = ()
    array: int = 0  # features taken as they are from an array beside the table
    structural: Structural | None = None
    classes: tuple[str, ...] = ()
    roles: tuple[tuple[str, str], ...] = ()  # (role, column name): id, label, split, source, target, weight
    left_out: tuple[str, ...] = ()  # columns that were seen and not used
    directed: bool = False
    weighted: bool = False
    fill: Literal["mean"] | None = None
    unknown: tuple[str, ...] | None = None  # labels that mean "no label", where they were given
    ignore_case: bool = False  # of labels

    @property
    def features(self) -> list[str]:
        """The name of every feature, in the order of the columns of x."""
        names = [name for column in self.columns for name in column.features]
        names += [f"array {i}" for i in range(self.array)]
        return names + (self.structural.features if self.structural else [])

    def role(self, name: str) -> str | None:
        """The column that played a role, such as `id` or `label`."""
        return dict(self.roles).get(name)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings, for JSON."""
        plain = asdict(self)
        plain["columns"] = [{"kind": type(column).__name__.lower(), **asdict(column)} for column in self.columns]
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Encoding":
        """The encoding that `to_dict` wrote."""
        try:
            structural = plain["structural"]
            fill: Literal["mean"] | None = "mean" if plain["fill"] == "mean" else None
            return cls(
                columns=tuple(_column(column) for column in plain["columns"]),
                array=int(plain["array"]),
                structural=None if structural is None else _structural(structural),
                classes=tuple(str(name) for name in plain["classes"]),
                roles=tuple((str(role), str(name)) for role, name in plain["roles"]),
                left_out=tuple(str(name) for name in plain["left_out"]),
                directed=bool(plain["directed"]),
                weighted=bool(plain["weighted"]),
                fill=fill,
                unknown=None if plain.get("unknown") is None else tuple(str(word) for word in plain["unknown"]),
                ignore_case=bool(plain.get("ignore_case", False)),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(
                f"this is not an encoding as bangs writes it ({type(error).__name__}: {error}); "
                "take the one that was saved with the model, or fit again"
            ) from error


def _column(plain: Mapping[str, Any]) -> Column:
    if plain["kind"] == "numeric":
        centred = bool(plain.get("centred", True))
        return Numeric(str(plain["name"]), float(plain["mean"]), float(plain["scale"]), centred)
    if plain["kind"] == "date" and plain["form"] in FORMATS:
        mean, scale = float(plain["mean"]), float(plain["scale"])
        return Date(str(plain["name"]), mean, scale, str(plain["form"]), bool(plain["yearly"]))
    if plain["kind"] == "categorical":
        return Categorical(str(plain["name"]), tuple(str(x) for x in plain["levels"]), bool(plain["other"]))
    raise ValueError(f"a column is numeric, categorical or a date, not {plain['kind']!r}")


def _structural(plain: Mapping[str, Any]) -> Structural:
    means, scales = (tuple(float(x) for x in plain[key]) for key in ("means", "scales"))
    return Structural(int(plain["seed"]), means, scales)
