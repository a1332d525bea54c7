"""Options that several commands take: each is declared once, and a command gives its default."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from bangs.selftraining.choices import CHOICES
from bangs.utils.limits import MOST

# how a command speaks
Json = Annotated[bool, typer.Option("--json", help="one JSON object to stdout and nothing else")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="only the result")]

# where things are
Device = Annotated[str, typer.Option(help="auto, cpu or cuda")]
Code = Annotated[
    Path | None,
    typer.Option(
        "--code",
        help="a Python file of yours that is run first, for names it adds to METHODS, CALIBRATORS, ESTIMATORS, MODELS",
    ),
]
DataFolder = Annotated[Path | None, typer.Option(help="folder of datasets; BANGS_DATA if left out")]
FittedFolder = Annotated[Path, typer.Argument(help="a folder that `bangs fit` wrote")]
FittedStore = Annotated[
    Path | None, typer.Option("--store", help="where the store lies now that the model was fitted on, if it was moved")
]
Resume = Annotated[bool, typer.Option("--resume", help="go on with the run in --out")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="discard the run in --out")]

# the parts of a method and its training
Model = Annotated[str, typer.Option(help="a name from `bangs list models`")]
Calibrator = Annotated[str, typer.Option(help="a name from `bangs list calibrators`")]
TEACHERS = ", ".join(CHOICES["teacher"])
Teacher = Annotated[str, typer.Option(help=f"who labels the next round: {TEACHERS}")]
BatchSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST,
        help="labelled nodes a step, with drawn neighbourhoods; without it and --fanout the whole graph in memory",
    ),
]
Fanout = Annotated[str | None, typer.Option(help="neighbours heard at each hop, such as 10,10 or all")]

Strategy = Annotated[
    str | None, typer.Option(help="how nodes are chosen: a name from `bangs list strategies`; usually left out")
]
TimeLimit = Annotated[
    float | None, typer.Option(help="seconds after which nothing further is tried; the result depends on the machine")
]

# results of a suite
Results = Annotated[Path, typer.Argument(help="the --out folder of `bangs reproduce`, or rows it exported")]
SuiteName = Annotated[str | None, typer.Option(help="a suite's name or file; those of the folder if left out")]
Protocol = Annotated[
    str | None, typer.Option(help="which round counts: validation, best_test, last; the suite's if left out")
]


@dataclass(frozen=True)
class Columns:
    """Where the columns of a graph's tables are not found by their names; fields are called as in `ReadOptions`."""

    id: Annotated[str | None, typer.Option("--id", help="the column of the node table that names a node")] = None
    label: Annotated[str | None, typer.Option("--label", help="its column of labels; blank = unknown")] = None
    source: Annotated[str | None, typer.Option("--source", help="the column of the edge table an edge begins with")] = (
        None
    )
    target: Annotated[str | None, typer.Option("--target", help="the column it ends with")] = None
    weight: Annotated[str | None, typer.Option("--weight", help="the column of edge weights")] = None
    unknown_edges: Annotated[
        str, typer.Option("--unknown-edges", help="edges to ids that no node has: refuse, drop, or add the nodes")
    ] = "refuse"

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of `ReadOptions`; what was left out has its default there."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Tables(Columns):
    """How the tables of a graph are read."""

    split: Annotated[str | None, typer.Option("--split", help="its column of train, val and test")] = None
    directed: Annotated[bool, typer.Option("--directed", help="edges go one way only")] = False
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", help="a column to leave out, the weights of edges too; can be repeated"),
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            "--categorical", help="take this column as categories though it holds numbers or dates; can be repeated"
        ),
    ] = None
    fill: Annotated[str | None, typer.Option("--fill", help="mean: put a column's mean where a number is missing")] = (
        None
    )
    unknown: Annotated[
        list[str] | None,
        typer.Option("--unknown", help="a label that means: no label, instead of NA, none, ?, …; can be repeated"),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="a label that is a class, though it looks like no label or like another class"),
    ] = None
    labels_ignore_case: Annotated[
        bool, typer.Option("--labels-ignore-case", help="labels that differ in capital letters only are one class")
    ] = False


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for every field of its parameter `tables`, `Columns` or `Tables`."""
    signature = inspect.signature(command)
    kind = signature.parameters["tables"].annotation
    # "table_", since a command may have an argument of the same name
    options = {f"table_{own.name}": own for own in fields(kind)}

    @wraps(command)
    def call(**words: Any) -> None:
        tables = {own.name: words.pop(name) for name, own in options.items()}
        command(**words, tables=kind(**tables))

    place = signature.parameters["tables"]
    more = [place.replace(name=name, default=own.default, annotation=own.type) for name, own in options.items()]
    every = [one for own in signature.parameters.values() for one in (more if own is place else [own])]
    call.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
    return call
