"""The schema of a suite file as pydantic models, with readable errors."""

from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from bangs.errors import UnknownName
from bangs.experiments.evaluation_protocols import Protocol
from bangs.experiments.suites.suite import Kind

_NONEMPTY = Field(min_length=1)
Text = Annotated[str, StringConstraints(strip_whitespace=True)]


class PublishedTable(BaseModel):
    """The table `published`: the protocol of the numbers, and one entry per row."""

    model_config = ConfigDict(strict=True, extra="allow")

    protocol: str = ""


class Content(BaseModel):
    """The keys of a suite file."""

    model_config = ConfigDict(strict=True, extra="forbid")

    title: str = ""
    kind: Kind = "table"
    rows: str | list[str] | None = None
    columns: str | list[str] | None = None
    experiment: dict[str, Any] = {}
    axes: Annotated[dict[str, Annotated[list[Any], _NONEMPTY]], _NONEMPTY]
    protocols: Annotated[list[Protocol], _NONEMPTY] = ["validation", "best_test"]
    blind: bool = False
    focus: str = ""
    names: dict[str, str] = {}
    absent: dict[str, str] = {}
    about: Text = ""
    reading: Text = ""
    published: PublishedTable | None = None


_RULES = {
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "list_type": "must be a list of values",
    "too_short": "must be a list of values, and not empty",
}


def first_problem(error: ValidationError) -> str:
    """What is wrong with a suite file, by its first wrong key."""
    first = error.errors()[0]
    path, kind, value = first["loc"], first["type"], first["input"]
    key = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")
    if kind == "extra_forbidden":
        return f"{key}: {UnknownName('key', key, Content.model_fields)}"
    if kind == "literal_error" and path[0] == "kind":
        return f"kind: {UnknownName('kind', str(value), get_args(Kind))}"
    if kind == "literal_error" and path[0] == "protocols":
        return f"protocols: {UnknownName('protocol', str(value), get_args(Protocol))}"
    if path == ("axes",):
        return 'axes must name what the runs differ in, such as method = ["raw", "bangs"]'
    if path[0] in ("rows", "columns"):  # a union of types, for which pydantic reports one error per type
        key, rule = str(path[0]), "must be an axis or a list of axes"
    else:
        rule = _RULES.get(kind, first["msg"])
    text = repr(value)
    return f"{key} {rule}, got {text if len(text) <= 200 else f'{text[:200]}…'}"
