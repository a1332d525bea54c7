"""How columns became features, fitted to one table and saved with a model, so that another table is read alike."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from bangs.errors import InvalidInput
from bangs.graphs.tables.dates import FORMATS
from bangs.utils.files import to_dataclass


@dataclass(frozen=True)
class Numeric:
    """A column of numbers: feature = (value − mean) / scale, or value / scale if it is not centred."""

    name: str
    mean: float  # also replaces missing numbers
    scale: float
    centred: bool = True
    kind: Literal["numeric"] = "numeric"

    @property
    def features(self) -> list[str]:
        return [self.name]


@dataclass(frozen=True)
class Categorical:
    """A column of categories: one 0/1 feature per level, and one for all other levels if `other`."""

    name: str
    levels: tuple[str, ...]
    other: bool = False
    kind: Literal["categorical"] = "categorical"

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
    kind: Literal["date"] = "date"

    def __post_init__(self) -> None:
        if self.form not in FORMATS:
            raise ValueError(f"a date is written {', '.join(FORMATS)}, not {self.form!r}")

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
    """All that is needed to read another graph like the first; can be stored as JSON."""

    columns: tuple[Column, ...] = ()
    array: int = 0  # number of features in an array beside the table
    structural: Structural | None = None
    classes: tuple[str, ...] = ()
    roles: tuple[tuple[str, str], ...] = ()  # (role, column name): id, label, split, source, target, weight
    left_out: tuple[str, ...] = ()  # columns that are not used
    directed: bool = False
    weighted: bool = False
    fill: Literal["mean"] | None = None
    unknown: tuple[str, ...] | None = None  # labels that mean "no label", if given
    ignore_case: bool = False  # of labels

    @property
    def features(self) -> list[str]:
        """The name of every feature, in the order of the columns of x."""
        names = [name for column in self.columns for name in column.features]
        names += [f"array {i}" for i in range(self.array)]
        return names + (self.structural.features if self.structural else [])

    def role(self, name: str) -> str | None:
        """The column with a role, such as `id` or `label`."""
        return dict(self.roles).get(name)

    def to_dict(self) -> dict[str, Any]:
        """The encoding as plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Encoding":
        """The encoding that `to_dict` wrote."""
        try:
            for field in fields(cls):
                if field.name not in plain and field.name not in ("unknown", "ignore_case"):  # which are newer
                    raise ValueError(f"{field.name}: missing")
            return to_dataclass(cls, plain)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"this is not an encoding as bangs writes it ({error}); take the one that was saved with the model, "
                "or fit again"
            ) from error
