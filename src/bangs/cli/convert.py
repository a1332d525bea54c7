"""`bangs convert`: convert tables, arrays or a synthetic graph to a store on disk."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from bangs.cli import options
from bangs.cli.console import Output
from bangs.errors import InvalidInput


@options.reads_tables(options.TABLES)
def convert(
    source: Annotated[
        str,
        typer.Argument(
            help="a folder of tables or of .npy arrays, an .npz, a dataset, or synthetic:nodes=1e6,edges=1e7,…"
        ),
    ],
    out: Annotated[Path, typer.Argument(help="the folder to make")],
    tables: dict[str, Any],
    like: Annotated[
        Path | None,
        typer.Option(help="a store or the folder of a fit; tables are read with its columns and classes"),
    ] = None,
    half: Annotated[bool, typer.Option("--half", help="features as float16, in half the space")] = False,
    seed: Annotated[int, typer.Option(help="seed of a synthetic graph")] = 0,
    data: options.DataFolder = None,
    verify: Annotated[bool, typer.Option("--verify", help="read the store again and compare every checksum")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the store that is there")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Convert a graph of any size to a store, which every command accepts as a graph.

    Example: bangs convert synthetic:nodes=1e5,edges=1e6 out/graph
    """
    from bangs.graphs.datasets import loading
    from bangs.graphs.store import Store, convert_from, is_store
    from bangs.graphs.tables import Encoding
    from bangs.graphs.tables.read_options import ReadOptions
    from bangs.runs import read_run
    from bangs.utils.text import counted

    output = Output(as_json=as_json, quiet=quiet)
    started = time.perf_counter()
    encoding = None
    if like is not None:
        fitted = not is_store(like) and (like / "config.json").is_file()
        columns = read_run(like).config.get("columns") if fitted else Store.open(like).manifest.encoding
        if not isinstance(columns, dict):
            raise InvalidInput(f"'{like}' was not made from tables, so it does not say how columns become features")
        encoding = Encoding.from_dict(columns)
    read_options = ReadOptions(**tables, encoding=encoding)
    streamed = source.startswith("synthetic:") or Path(source).is_dir()
    if is_store(source):
        raise InvalidInput(f"'{source}' is a store already; every command that takes a graph takes it as it is")
    graph = source if streamed else loading.load(source, data)
    made = convert_from(graph, out, name=source, seed=seed, half=half, options=read_options, overwrite=overwrite)
    output.notes(made.notes)
    if verify:
        Store.open(out).verify()
    facts = {
        "nodes": made.nodes,
        "edges": made.edges,
        "features": made.features,
        "classes": len(made.classes),
        "bytes": made.bytes,
        "seconds": round(time.perf_counter() - started, 3),
        "verified": verify,
        "out": out.name,
    }
    message = (
        f"{made.nodes:,} nodes, {counted(made.edges, 'edge')}, {counted(made.features, 'feature')}, "
        f"{counted(len(made.classes), 'class', 'classes')}: {made.bytes / 2**20:,.1f} MiB in {out}"
    )
    output.result(facts, message)
