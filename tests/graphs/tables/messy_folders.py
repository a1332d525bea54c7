"""Twelve messy folders: the same graph of sixty nodes as different users might save it.

python -m tests.graphs.tables.messy_folders OUT        # write them

What `bangs fit` made of them before commit eda09fc, and what it makes of them since:

Excel's semicolons         read, with a note                   the same
float ids                  refused, with a hint about .0    read: 30 ends found by ids that differ in '.0'
placeholder labels         'unknown' became a class         stops: --unknown or --keep decides
dates                      left out: different words        days, sine and cosine of the time of year
one-directional edges      both ways, in Python one way     both ways, in Python too unless directed=True
junk columns               left out, with a note               the same
two spellings of a class   two classes, with a note            stops: --labels-ignore-case or --keep decides
edges to unknown ids       refused                          refused; --unknown-edges drop or add
weights with gaps          refused, the way out incomplete  refused; --ignore gives all edges the same weight
duplicated nodes           refused, with rows and a way out the same
a Parquet with categories  read                             the same
a frame with an index      read, the index being the id     the same
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

NODES = 60


def nodes() -> pd.DataFrame:
    """Sixty nodes of two classes; twenty-four have a label."""
    rng = np.random.default_rng(0)
    label = np.arange(NODES) % 2
    return pd.DataFrame(
        {
            "id": np.arange(1000, 1000 + NODES),
            "height": (rng.normal(size=NODES) + label).round(3),
            "width": (rng.normal(size=NODES) - label).round(3),
            "label": np.where(np.arange(NODES) < 24, np.array(["cat", "dog"])[label], ""),
        }
    )


def edges() -> pd.DataFrame:
    """A ring in each class, every edge listed once."""
    number = np.arange(NODES)
    return pd.DataFrame({"source": 1000 + number, "target": 1000 + (number + 2) % NODES})


def save(path: Path, node_table: pd.DataFrame, edge_table: pd.DataFrame) -> None:
    node_table.to_csv(path / "nodes.csv", index=False)
    edge_table.to_csv(path / "edges.csv", index=False)


def excel_semicolons(path: Path) -> None:
    for name, frame in (("nodes", nodes()), ("edges", edges())):
        text = frame.to_csv(index=False, sep=";", decimal=",", lineterminator="\r\n")
        (path / f"{name}.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())


def float_ids(path: Path) -> None:
    links = edges().astype(object)
    links.loc[::2, "source"] = [f"{id}.0" for id in links.loc[::2, "source"]]
    save(path, nodes(), links)


def placeholder_labels(path: Path) -> None:
    save(path, nodes().replace({"label": {"": "unknown"}}), edges())


def dates(path: Path) -> None:
    days = pd.to_datetime("2019-03-01") + pd.to_timedelta(np.arange(NODES) * 30, unit="D")
    save(path, nodes().assign(joined=days.strftime("%d.%m.%Y")), edges())


def one_directional_edges(path: Path) -> None:
    save(path, nodes(), edges())


def junk_columns(path: Path) -> None:
    junk = {
        "note": [f"remark {i}" for i in range(NODES)],
        "constant": 7,
        "empty": "",
        "link": [f"http://x.org/{i}" for i in range(NODES)],
    }
    save(path, nodes().assign(**junk), edges())


def two_spellings(path: Path) -> None:
    node_table = nodes()
    node_table.loc[[0, 2], "label"] = "Cat"
    save(path, node_table, edges())


def edges_to_unknown_ids(path: Path) -> None:
    links = edges()
    links.loc[[3, 9], "target"] = [5000, 5001]
    save(path, nodes(), links)


def weights_with_gaps(path: Path) -> None:
    weight = np.where(np.arange(NODES) % 10 == 4, np.nan, 1.5)
    save(path, nodes(), edges().assign(weight=weight))


def duplicated_nodes(path: Path) -> None:
    node_table = nodes()
    save(path, pd.concat([node_table, node_table.iloc[[4, 5]]]), edges())


def parquet_with_categories(path: Path) -> None:
    node_table = nodes().assign(town=pd.Categorical(np.array(["Rome", "Oslo", "Bonn"])[np.arange(NODES) % 3]))
    node_table.assign(label=node_table["label"].replace("", None).astype("category")).to_parquet(path / "nodes.parquet")
    edges().to_parquet(path / "edges.parquet")


def frame_with_an_index(path: Path) -> None:
    indexed = nodes().assign(id=lambda table: "n" + table["id"].astype(str)).set_index("id")
    indexed.rename_axis(None).to_csv(path / "nodes.csv")
    edges().map(lambda id: f"n{id}").to_csv(path / "edges.csv")


FOLDERS: dict[str, Callable[[Path], None]] = {
    "Excel's semicolons": excel_semicolons,
    "float ids": float_ids,
    "placeholder labels": placeholder_labels,
    "dates": dates,
    "one-directional edges": one_directional_edges,
    "junk columns": junk_columns,
    "two spellings of a class": two_spellings,
    "edges to unknown ids": edges_to_unknown_ids,
    "weights with gaps": weights_with_gaps,
    "duplicated nodes": duplicated_nodes,
    "a Parquet with categories": parquet_with_categories,
    "a frame with an index": frame_with_an_index,
}


def write(name: str, path: Path) -> Path:
    """The path, with the folder of this name in it."""
    path.mkdir(parents=True, exist_ok=True)
    FOLDERS[name](path)
    return path


if __name__ == "__main__":
    for number, name in enumerate(FOLDERS):
        write(name, Path(sys.argv[1]) / f"{number:02}")
