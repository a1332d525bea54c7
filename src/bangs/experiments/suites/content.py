"""The content of a suite file: its tables and keys as pydantic models, and their errors as sentences."""

from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bangs.errors import InvalidInput, UnknownName
from bangs.experiments.suites.suite import Kind, Protocol

_SOME = Field(min_length=1)


class Published(BaseModel):
    """The table `published`: the rule behind the numbers, and one entry for every row."""

    model_config = ConfigDict(strict=True, extra="allow")

    protocol: str = ""

    @property
    def rows(self) -> dict[str, Any]:
        return self.model_extra or {}


class Content(BaseModel):
    """The keys of a suite file."""

    model_config = ConfigDict(strict=True, extra="forbid")

    title: str = ""
    kind: Kind = "table"
    rows: str | list[str] | None = None
    columns: str | list[str] | None = None
    experiment: dict[str, Any] = {}
    axes: Annotated[dict[str, Annotated[list[Any], _SOME]], _SOME]
    protocols: Annotated[list[Protocol], _SOME] = ["validation", "best_test"]
    blind: bool = False
    focus: str = ""
    names: dict[str, str] = {}
    absent: dict[str, str] = {}
    about: str = ""
    reading: str = ""
    published: Published | None = None


class Faults:
    """What is wrong in a file, in sentences that name it and the key."""

    def __init__(self, source: str):
        self.source = source

    def wrong(self, place: str, rule: str) -> InvalidInput:
        """A key that breaks its rule."""
        return InvalidInput(f"{self.source}: {place} {rule}")

    def unknown(self, kind: str, name: str, known: Any, place: str) -> InvalidInput:
        """A name that is none, with a suggestion."""
        return InvalidInput(f"{self.source}: {place}: {UnknownName(kind, name, known)}")


_AXES = 'must name what the runs differ in, such as method = ["raw", "bangs"]'
_RULES = {
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "list_type": "must be a list of values",
    "too_short": "must be a list of values, and not empty",
}


def check_content(content: dict[str, Any], faults: Faults) -> Content:
    """The content of a file; the first key that is wrong is a sentence."""
    try:
        return Content.model_validate(content)
    except ValidationError as error:
        raise _fault(error, faults) from error


def _fault(error: ValidationError, faults: Faults) -> InvalidInput:
    first = error.errors()[0]
    keys, kind, value = first["loc"], first["type"], first["input"]
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
    if kind == "extra_forbidden":
        return faults.unknown("key", place, Content.model_fields, place)
    if kind == "literal_error" and keys[0] in ("kind", "protocols"):
        known = get_args(Kind if keys[0] == "kind" else Protocol)
        return faults.unknown("kind" if keys[0] == "kind" else "protocol", str(value), known, str(keys[0]))
    if keys == ("axes",):
        return faults.wrong("axes", _AXES)
    if keys[0] in ("rows", "columns"):  # each is one of several types, and pydantic has an error for every one
        return faults.wrong(str(keys[0]), f"must be an axis or a list of axes, got {_short(value)}")
    return faults.wrong(place, f"{_RULES.get(kind, first['msg'])}, got {_short(value)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
