"""GraphParts: what a caller asked of their files, and what was found in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bangs.core.types import Split
from bangs.graphs.tables.edges import Edges
from bangs.graphs.tables.encoding import Categorical, Encoding, Numeric
from bangs.graphs.tables.table import Limits, Table


@dataclass(frozen=True)
class ReadOptions:
    """The arguments of `read`, in one hand."""

    roles: dict[str, str | None]
    directed: bool
    ignore: tuple[str, ...]
    categorical: tuple[str, ...]
    fill: Literal["mean"] | None
    unknown: Sequence[str] | None
    seed: int
    encoding: Encoding | None
    limits: Limits

    @classmethod
    def plain(cls, **changes: Any) -> "ReadOptions":
        """Nothing in particular, but for the changes."""
        roles = dict.fromkeys(("id", "label", "source", "target", "weight", "split"))
        return replace(cls(roles, False, (), (), None, None, 0, None, Limits()), **changes)

    @property
    def as_fitted(self) -> "ReadOptions":
        """The same, with edges directed and blanks filled as the encoding has it, where nothing else was asked."""
        if self.encoding is None:
            return self
        directed, fill = self.directed or self.encoding.directed, self.fill or self.encoding.fill
        return replace(self, directed=directed, fill=fill, encoding=replace(self.encoding, fill=fill))

    @property
    def options(self) -> list[str]:
        """What was asked for, as the command line calls it."""
        others = {"directed": self.directed, "ignore": self.ignore, "categorical": self.categorical, "fill": self.fill}
        others |= {"unknown": self.unknown, "like": self.encoding}
        return [f"--{name}" for name, value in {**self.roles, **others}.items() if value]

    @property
    def unread(self) -> tuple[str, ...]:
        """Columns that may hold anything: those to leave out, here or when the encoding was made."""
        return (*self.ignore, *(self.encoding.left_out if self.encoding is not None else ()))

    def role(self, name: str, table: Table) -> str | None:
        """The column asked for, or the one that played the role when the encoding was made, unless left out."""
        asked = self.roles[name]
        if asked is None and self.encoding is not None:
            known = self.encoding.role(name)
            return known if known in table.columns and known not in self.ignore else None
        return asked


@dataclass(frozen=True, eq=False)
class GraphParts:
    """A graph whose features are not yet put together."""

    file: str
    ids: npt.NDArray[np.object_]  # str [N]
    edges: Edges
    y: npt.NDArray[np.int64]  # [N], -1 = unknown
    classes: list[str]
    split: Split | None  # bool [S, N]
    dense: npt.NDArray[np.float32]  # [N, F], from the table's columns
    array: Any  # [N, F] as it came, dense or scipy CSR; None where there is none
    columns: tuple[Numeric | Categorical, ...] = ()
    left_out: tuple[str, ...] = ()
    roles: tuple[tuple[str, str], ...] = ()
