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
Json = Annotated[bool, typer.Option("--json", help="print one JSON object to stdout and nothing else")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print only the result")]

# where things are
Device = Annotated[str, typer.Option(help="auto, cpu or cuda")]
Code = Annotated[
    Path | None,
    typer.Option(
        "--code",
        help="a Python file to run first; it can add names to METHODS, CALIBRATORS, ESTIMATORS, MODELS",
    ),
]
DataFolder = Annotated[Path | None, typer.Option(help="folder of datasets; BANGS_DATA if left out")]
FittedFolder = Annotated[Path, typer.Argument(help="a folder that `bangs fit` wrote")]
FittedStore = Annotated[
    Path | None, typer.Option("--store", help="the new path of the store that the model was fitted on, if it was moved")
]
Resume = Annotated[bool, typer.Option("--resume", help="continue the run in --out")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="delete the run in --out and start again")]

# the parts of a method and its training
Model = Annotated[str, typer.Option(help="a name from `bangs list models`")]
Calibrator = Annotated[str, typer.Option(help="a name from `bangs list calibrators`")]
TEACHERS = ", ".join(CHOICES["teacher"])
Teacher = Annotated[str, typer.Option(help=f"the round whose model labels the next round: {TEACHERS}")]
BatchSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST,
        help="labelled nodes in one training step, with sampled neighbours; without it and --fanout the whole graph "
        "is trained at once",
    ),
]
Fanout = Annotated[str | None, typer.Option(help="neighbours sampled at each hop, such as 10,10 or all")]

Strategy = Annotated[str | None, typer.Option(help="how nodes are chosen: a name from `bangs list strategies`")]
TimeLimit = Annotated[
    float | None,
    typer.Option(help="seconds after which no further model is tried; the result then depends on the machine"),
]

# results of a suite
Results = Annotated[Path, typer.Argument(help="the --out folder of `bangs reproduce`, or rows it exported")]
SuiteName = Annotated[str | None, typer.Option(help="a suite's name or file; all suites of the folder if left out")]
Protocol = Annotated[
    str | None,
    typer.Option(help="the round whose accuracy counts: validation, best_test, last; the suite's choice if left out"),
]


@dataclass(frozen=True)
class Columns:
    """Where the columns of a graph's tables are not found by their names; fields are called as in `ReadOptions`."""

    id: Annotated[str | None, typer.Option("--id", help="the column of nodes.csv with the name of a node")] = None
    label: Annotated[
        str | None, typer.Option("--label", help="the column of nodes.csv with the labels; blank = unknown")
    ] = None
    source: Annotated[str | None, typer.Option("--source", help="the column of edges.csv with the first node")] = None
    target: Annotated[str | None, typer.Option("--target", help="the column of edges.csv with the second node")] = None
    weight: Annotated[str | None, typer.Option("--weight", help="the column of edges.csv with the weights")] = None
    unknown_edges: Annotated[
        str,
        typer.Option(
            "--unknown-edges", help="edges to ids that no node has: refuse the table, drop the edges, or add the nodes"
        ),
    ] = "refuse"

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of `ReadOptions`; what was left out has its default there."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Tables(Columns):
    """How the tables of a graph are read."""

    split: Annotated[
        str | None, typer.Option("--split", help="the column of nodes.csv with the words train, val and test")
    ] = None
    directed: Annotated[bool, typer.Option("--directed", help="edges go from source to target only")] = False
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", help="a column to leave out, of nodes.csv or edges.csv; can be repeated"),
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option("--categorical", help="a column of numbers or dates to read as categories; can be repeated"),
    ] = None
    fill: Annotated[
        str | None, typer.Option("--fill", help="mean: fill missing numbers with the mean of the column")
    ] = None
    unknown: Annotated[
        list[str] | None,
        typer.Option(
            "--unknown", help="a word that means 'no label'; NA, none, ? and the like are then classes; can be repeated"
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            help="a label that is a class, although it looks like 'no label' or like another class; can be repeated",
        ),
    ] = None
    labels_ignore_case: Annotated[
        bool, typer.Option("--labels-ignore-case", help="labels that differ only in capital letters are one class")
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
