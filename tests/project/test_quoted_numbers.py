"""The numbers that the README and the guides quote are those of the generated pages and of the rows."""

import json
import re
from typing import Any

import pytest

from tests import ROOT

UNITS = {"ms": 1e-3, "s": 1.0, "×": 1.0, "%": 0.01, "GiB": 2**30, "GB": 1e9}


def lines(path: str, after: str = "", before: str = r"\Z") -> list[list[str]]:
    """The cells of every line of a table between two pieces of a page."""
    text = re.search(rf"{after}(.*?){before}", (ROOT / path).read_text(), re.S)[1]  # type: ignore[index]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in re.findall(r"^\|.*\|$", text, re.M)]


def number(cell: str) -> float:
    return float(re.search(r"\d+\.\d+", cell)[0])  # type: ignore[index]


def quantities(cell: str) -> list[float]:
    """The numbers with a unit, in seconds, bytes and shares."""
    found = re.findall(rf"([\d,.]+) ({'|'.join(UNITS)})(?!\w)", cell)
    return [float(value.replace(",", "")) * UNITS[unit] for value, unit in found]


def file(name: str) -> dict[str, Any]:
    """What a benchmark printed."""
    return json.loads((ROOT / "benchmarks" / "rows" / "measured" / f"{name}.json").read_text())


def row(name: str, **wanted: Any) -> dict[str, Any]:
    """The first such row of a file."""
    return next(row for row in file(name)["rows"] if wanted.items() <= row.items())


def test_the_few_labels_of_the_readme() -> None:
    page = {cells[0]: cells for cells in lines("docs/results/few-labels.md") if cells[1] == "10"}
    graphs = [page[name] for name in ("cora", "citeseer", "pubmed", "lastfm_asia_large", "amazon_computers")]
    told = {cells[0]: cells[1:] for cells in lines("README.md", "Your own graph", "The paper's experiments")}
    methods = {"SGC: logistic regression on features averaged over two hops": 2, "GCN": 5, "`bangs fit`": 7}
    for name, column in {**methods, "scikit-learn's self-training on the same features": 4}.items():
        mean = sum(number(graph[column]) for graph in page.values()) / 10
        assert list(map(float, told[name])) == pytest.approx(
            [*(number(graph[column]) for graph in graphs), mean], abs=0.051
        )


def test_the_accuracies_of_the_readme() -> None:
    told = {cells[0]: cells[1:] for cells in lines("README.md", "The paper's experiments", "So BANGS")}
    page = {tuple(cells[:2]): cells[2:] for cells in lines("docs/reproduction.md", "## Main comparison", "\n## ")}
    places = ("Cora", "CiteSeer", "PubMed", "LastFM Asia, 5 countries", "Amazon Computers")
    rows = [page[place, "ours, validation"] for place in places]
    for name, column in {"GCN alone": 0, "CPL": 5, "BANGS": 6}.items():
        assert list(map(float, told[name])) == pytest.approx([number(row[column]) for row in rows], abs=0.051)


def test_the_soft_labels_of_the_readme() -> None:
    told = {tuple(cells[:2]): cells[2:] for cells in lines("README.md", "So BANGS", "\n## ")[2:]}
    page = lines("docs/reproduction.md", "## Hard and soft labels, public splits", "\n## ")
    rows = {cells[0]: cells[2:] for cells in page if cells[1] == "ours, validation"}
    columns = {"none": 0, "BANGS": 3, "soft labels": 6}  # raw; BANGS, first; soft, aligned
    assert len(told) == 5
    for (model, labels), cells in told.items():
        found = [number(rows[f"{model} · {graph}"][columns[labels]]) for graph in ("Cora", "CiteSeer", "PubMed")]
        assert list(map(float, cells)) == pytest.approx(found, abs=0.051)


def test_the_calibrators_of_their_guide() -> None:
    for name, *cells in lines("docs/calibration.md", "## What it brings", "\n## ")[2:]:
        for dataset, cell in zip(("cora", "citeseer", "pubmed"), cells, strict=True):
            found = row("calibration", dataset=dataset, calibrator=name.strip("`"))
            assert [*map(float, cell.split(", "))] == [
                pytest.approx(found["nll"]["mean"], abs=0.0006),
                found["ece"]["mean"],
            ]


def test_the_estimators_of_their_guide() -> None:
    for players, *cells in lines("docs/estimators.md", "## How well", "\n## ")[2:]:
        for name, cell in zip(("msr", "wls", "meanfield", "marginals"), cells, strict=True):
            found = row("estimators", dataset="cora", K=int(players), estimator=name)
            assert number(cell) == pytest.approx(found["spearman"], abs=0.0006)
            assert quantities(cell) == pytest.approx([found["top_k"]], abs=0.0051)


def test_the_speed_of_its_guide() -> None:
    pairs = [
        (row("selection", graph="cora", estimator="plain"), row("selection", graph="cora", estimator="marginals")),
        (row("selection", graph="cora", estimator="plain"), row("selection", graph="cora", estimator="meanfield")),
        (row("training", dataset="cora"), row("training", dataset="cora", system="bangs")),
        (row("training", dataset="pubmed"), row("training", dataset="pubmed", system="bangs")),
    ]
    found = [[plain["cpu_seconds"], ours["cpu_seconds"], ours["cpu_ratio"]] for plain, ours in pairs]
    run = row("end_to_end")
    found.append([run["plain_cpu_seconds"], run["bangs_cpu_seconds"], run["cpu_ratio"]])
    found += [[row("gpu_runs", teacher=teacher)["seconds"]] for teacher in ("best", "latest")]
    *told, comparison, million = [
        quantities(" ".join(cells)) for cells in lines("docs/performance.md", "", "\n## ")[2:]
    ]
    assert told == [pytest.approx(numbers, rel=0.03) for numbers in found]
    assert comparison == quantities(file("gpu_runs")["remark"])
    assert million == pytest.approx([file("million")["seconds"], row("million", round=3)["peak_bytes"]], rel=0.03)


def test_the_large_graphs_of_their_guide() -> None:
    told = [quantities(" ".join(cells[3:])) for cells in lines("docs/scale.md", "## What to expect")[2:]]
    ours = [row("large_fit"), *file("large_store")["rows"][::2]]
    found = [[one["seconds"], *quantities(one["peak resident memory"])] for one in ours]
    epoch = row("products", what="an epoch of the tuned GCN on the whole graph")
    found.append([epoch["time, s"], 1e9 * epoch["peak of the GPU's memory, GB"]])
    assert told == [pytest.approx(numbers, rel=0.06) for numbers in found]
