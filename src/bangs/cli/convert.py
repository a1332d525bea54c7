"""`bangs convert`: tables, arrays or a seed, to a store that is mapped from the disk."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from bangs.cli.console import Voice
from bangs.graphs.store import Manifest, Store, convert_from


def convert(
    source: Annotated[
        str,
        typer.Argument(help="a folder of tables, an .npz, a dataset, or synthetic:nodes=1e6,edges=1e7,features=64,…"),
    ],
    out: Annotated[Path, typer.Argument(help="the folder to make")],
    half: Annotated[bool, typer.Option("--half", help="features as float16, in half the space")] = False,
    seed: Annotated[int, typer.Option(help="of a synthetic graph")] = 0,
    data: Annotated[Path | None, typer.Option(help="folder of datasets; BANGS_DATA if left out")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="read the store again and compare every checksum")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the store that is there")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object to stdout and nothing else")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="only the result")] = False,
) -> None:
    """A graph of any size as a store, which every command takes in place of a graph.

    Example: bangs convert synthetic:nodes=1e5,edges=1e6 out/graph
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    begin = time.perf_counter()
    made = convert_from(source, out, seed=seed, half=half, folder=data, overwrite=overwrite)
    for note in made.notes:
        voice.say(escape(f"· {note}"))
    if verify:
        Store.open(out).verify()
    facts = {
        "nodes": made.nodes,
        "edges": made.edges,
        "features": made.features,
        "classes": len(made.classes),
        "bytes": made.bytes,
        "seconds": round(time.perf_counter() - begin, 3),
        "verified": verify,
        "out": out.name,
    }
    voice.result(facts, escape(_told(made, out)))


def _told(made: Manifest, out: Path) -> str:
    return (
        f"{made.nodes:,} nodes, {made.edges:,} edges, {made.features:,} features, {len(made.classes)} classes: "
        f"{made.bytes / 2**20:,.1f} MiB in {out}"
    )
