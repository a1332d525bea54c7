"""Convert a graph in any form into a store."""

from pathlib import Path

from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.store import from_arrays
from bangs.graphs.store.from_tables import from_tables
from bangs.graphs.store.manifest import Manifest
from bangs.graphs.store.random_graph import PREFIX, Synthetic
from bangs.graphs.store.writer import Writer
from bangs.graphs.tables.read_options import ReadOptions


def convert_from(
    source: str | Data,
    out: Path,
    *,
    name: str = "the graph",
    seed: int = 0,
    half: bool = False,
    options: ReadOptions | None = None,
    overwrite: bool = False,
) -> Manifest:
    """The store of a source: `synthetic:…`, a folder of tables or of .npy files, or a graph in memory.

    Edges of a folder go both ways unless `options.directed`; those of a graph in memory stay as they are. Options about
    columns are refused if the source has no columns.
    """
    options = options or ReadOptions()
    of_arrays = isinstance(source, str) and (Path(source) / "edge_index.npy").is_file()
    if not isinstance(source, str) or source.startswith(PREFIX) or of_arrays:
        unused = [option for option in options.given if not of_arrays or option != "--directed"]
        if unused:
            raise InvalidInput(
                f"'{name}' has no columns to name or fill, and its edges are taken as they are; leave "
                f"{' and '.join(unused)} out, or convert a folder of tables"
            )
    dtype = "float16" if half else "float32"
    with Writer(out, overwrite=overwrite) as writer:
        if not isinstance(source, str):
            return from_arrays.from_data(source, writer, dtype, name)
        if source.startswith(PREFIX):
            return Synthetic.parse(source).write(writer, seed, dtype)
        if of_arrays:
            return from_arrays.from_folder(Path(source), writer, dtype, directed=options.directed)
        return from_tables(Path(source), writer, dtype, options)
