"""ReadOptions: how a person wants their tables to be read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bangs.graphs.tables.encoding import Encoding
from bangs.graphs.tables.table import Limits, Table


@dataclass(frozen=True)
class ReadOptions:
    """The arguments of `read`."""

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
        """The defaults, but for the changes."""
        roles = dict.fromkeys(("id", "label", "source", "target", "weight", "split"))
        return replace(cls(roles, False, (), (), None, None, 0, None, Limits()), **changes)

    @property
    def as_fitted(self) -> "ReadOptions":
        """The same, with edges directed and blanks filled as in the encoding, where nothing else was asked for."""
        if self.encoding is None:
            return self
        directed, fill = self.directed or self.encoding.directed, self.fill or self.encoding.fill
        return replace(self, directed=directed, fill=fill, encoding=replace(self.encoding, fill=fill))

    @property
    def given(self) -> list[str]:
        """The options that differ from the defaults, as the command line spells them."""
        others = {"directed": self.directed, "ignore": self.ignore, "categorical": self.categorical, "fill": self.fill}
        others |= {"unknown": self.unknown, "like": self.encoding}
        return [f"--{name}" for name, value in {**self.roles, **others}.items() if value]

    @property
    def unread(self) -> tuple[str, ...]:
        """Columns that may hold anything: those to leave out, here or when the encoding was made."""
        return (*self.ignore, *(self.encoding.left_out if self.encoding is not None else ()))

    def role(self, name: str, table: Table) -> str | None:
        """The column asked for, or the one that played the role when the encoding was made, unless left out."""
        given = self.roles[name]
        if given is None and self.encoding is not None:
            known = self.encoding.role(name)
            return known if known in table.columns and known not in self.ignore else None
        return given
