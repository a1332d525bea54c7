"""`bangs list`: the names a command understands."""

import json
from typing import Annotated

import typer

from bangs.cli import options
from bangs.cli.console import Voice
from bangs.errors import UnknownName


def listing(
    kind: Annotated[str, typer.Argument(help="datasets, methods, models, calibrators, suites or estimators")],
    as_json: options.Json = False,
) -> None:
    """The names the other commands understand.

    Example: bangs list methods
    """
    from bangs.cli.kinds import KINDS

    if kind not in KINDS:
        raise UnknownName("list", kind, KINDS)
    names = KINDS[kind]()
    if as_json:
        print(json.dumps({kind: names}))
        return
    voice = Voice()
    width = max(map(len, names))
    for name, words in names.items():
        voice.say(f"{name:<{width}}  {words}")
