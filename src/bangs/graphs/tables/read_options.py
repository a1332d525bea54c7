"""The options for reading tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from bangs.errors import InvalidInput
from bangs.graphs.tables.fitted_encoding import Encoding
from bangs.graphs.tables.table import Limits, Table
from bangs.utils.setting_checks import check_choice

SCALES = ("auto", "standard", "none")
UNKNOWN_EDGES = ("refuse", "drop", "add")


@dataclass(frozen=True)
class ReadOptions:
    """The options of `read`; columns that are not named are guessed."""

    id: str | None = None
    label: str | None = None
    split: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    directed: bool = False  # otherwise every edge goes both ways
    ignore: Sequence[str] = ()  # columns of either table to leave out
    categorical: Sequence[str] = ()  # columns of digits or dates to read as categories
    fill: Literal["mean"] | None = None  # replaces missing numbers
    unknown: Sequence[str] | None = None  # labels that mean "no label"; None = blanks, placeholders such as NA, −1
    keep: Sequence[str] = ()  # labels that are classes, though they look like "no label" or another class
    labels_ignore_case: bool = False  # labels that differ in capital letters only are one class
    unknown_edges: str = "refuse"  # edges to unknown ids; or "drop" them, or "add" the nodes
    scale: str = "auto"  # of numbers: "standard", "none", or "auto" = standard except for counts and embeddings
    two_labels: bool = False  # every class needs two labels: one for training, one for validation
    seed: int = 0  # of structural features
    encoding: Encoding | None = None  # of a fitted model: same features, same classes
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.fill not in (None, "mean"):
            raise InvalidInput(f"--fill must be 'mean', got '{self.fill}'")
        check_choice("--scale", self.scale, SCALES)
        check_choice("--unknown-edges", self.unknown_edges, UNKNOWN_EDGES)

    def as_fitted(self) -> "ReadOptions":
        """These options, completed by those of the fitted graph."""
        fitted = self.encoding
        if fitted is None:
            return self
        fill = self.fill or fitted.fill
        return replace(
            self,
            directed=self.directed or fitted.directed,
            fill=fill,
            unknown=fitted.unknown if self.unknown is None else self.unknown,
            labels_ignore_case=self.labels_ignore_case or fitted.ignore_case,
            encoding=replace(fitted, fill=fill),
        )

    @property
    def given(self) -> list[str]:
        """The names of the options about tables that differ from the defaults, as on the command line."""
        option_names = {field.name: field.name.replace("_", "-") for field in fields(self)} | {"encoding": "like"}
        return [
            f"--{option_names[field.name]}"
            for field in fields(self)
            if field.name not in ("two_labels", "seed", "limits")
            and (value := getattr(self, field.name))
            and value != field.default
        ]

    @property
    def unread(self) -> tuple[str, ...]:
        """The columns that are not read: those left out here or when the encoding was made."""
        return (*self.ignore, *(self.encoding.left_out if self.encoding is not None else ()))

    def role(self, name: str, table: Table) -> str | None:
        """The column given for a role, or the one of the fitted graph unless it is ignored."""
        column: str | None = getattr(self, name)
        if column is None and self.encoding is not None:
            fitted_column = self.encoding.role(name)
            return fitted_column if fitted_column in table.columns and fitted_column not in self.ignore else None
        return column
