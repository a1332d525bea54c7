"""Options of several commands: each is declared once, and each command sets its default."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from bangs.selftraining.defaults import CHOICES
from bangs.utils.limits import MAX_COUNT

# output
Json = Annotated[bool, typer.Option("--json", help="print one JSON object to stdout and nothing else")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print only the result")]

# folders, files and devices
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

# parts of a method and its training
Calibrator = Annotated[str, typer.Option(help="a name from `bangs list calibrators`")]
TEACHERS = ", ".join(CHOICES["teacher"])
Teacher = Annotated[str, typer.Option(help=f"with hard labels, whose model labels the next round: {TEACHERS}")]
BatchSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MAX_COUNT,
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


# how the tables of a graph are read: the fields of `ReadOptions`, each with its type, default and help
_TEXT, _TEXTS = str | None, list[str] | None
COLUMNS: dict[str, tuple[Any, Any, str]] = {
    "id": (_TEXT, None, "the column of nodes.csv with the name of a node"),
    "label": (_TEXT, None, "the column of nodes.csv with the labels; an empty cell means unknown"),
    "source": (_TEXT, None, "the column of edges.csv with the first node"),
    "target": (_TEXT, None, "the column of edges.csv with the second node"),
    "weight": (_TEXT, None, "the column of edges.csv with the weights"),
    "unknown_edges": (
        str,
        "refuse",
        "edges to ids that no node has: refuse the table, drop the edges, or add the nodes",
    ),
}
TABLES = {
    **COLUMNS,
    "split": (_TEXT, None, "the column of nodes.csv with the words train, val and test"),
    "directed": (bool, False, "edges go from source to target only"),
    "ignore": (_TEXTS, None, "a column to leave out, of nodes.csv or edges.csv; can be repeated"),
    "categorical": (_TEXTS, None, "a column of numbers or dates to read as categories; can be repeated"),
    "fill": (_TEXT, None, "mean: fill missing numbers with the mean of the column"),
    "unknown": (
        _TEXTS,
        None,
        "a word that means 'no label'; empty cells still do, but NA, none, ? become classes; can be repeated",
    ),
    "keep": (
        _TEXTS,
        None,
        "a label that is a class, although it looks like 'no label' or like another class; can be repeated",
    ),
    "labels_ignore_case": (bool, False, "labels that differ only in capital letters are one class"),
}


def reads_tables(options: dict[str, tuple[Any, Any, str]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the parameter `tables` of a command by these options; it gets a dict of those that are not None."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**arguments: Any) -> None:
            tables = {name: arguments.pop(f"table_{name}") for name in options}
            command(**arguments, tables={name: value for name, value in tables.items() if value is not None})

        signature = inspect.signature(command)
        parameters = []
        for parameter in signature.parameters.values():
            if parameter.name != "tables":
                parameters.append(parameter)
                continue
            for name, (kind, default, text) in options.items():
                flag = f"--{name.replace('_', '-')}"
                option = typer.Option(default, flag, help=text, rich_help_panel="Tables")
                # "table_", since a command may have an argument of the same name
                parameters.append(parameter.replace(name=f"table_{name}", default=option, annotation=kind))
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return call

    return decorate
