"""Converting: whatever holds a graph, into a store."""

from pathlib import Path

from bangs.graphs.store.made import Synthetic
from bangs.graphs.store.manifest import Manifest
from bangs.graphs.store.writing import Writer


def convert_from(
    source: str, out: Path, *, seed: int = 0, half: bool = False, folder: Path | None = None, overwrite: bool = False
) -> Manifest:
    """The store of a source: a text that begins with `synthetic:`, a folder of tables, an .npz file or a dataset."""
    dtype = "float16" if half else "float32"
    made = Synthetic.parse(source)
    with Writer(out, overwrite=overwrite) as writer:
        return made.write(writer, seed, dtype)
