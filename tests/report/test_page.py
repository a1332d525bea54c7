"""The page: one complete file, in which no name runs as code."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from bangs.estimator.explanation import explain
from bangs.graphs.edges import EdgeList
from bangs.report.headline import headline
from bangs.report.page import render
from bangs.report.page_data import page_data
from bangs.report.run_data import RunData
from tests.report.sample_runs import SCRIPT, experiment_run, fit_run


@pytest.fixture(scope="module")
def run_data() -> RunData:
    return fit_run()


@pytest.fixture(scope="module")
def page(run_data: RunData) -> str:
    return render(run_data)


def embedded(page: str) -> dict[str, object]:
    match = re.search(r'<script type="application/json" id="facts">(.*?)</script>', page, re.S)
    assert match is not None
    return dict(json.loads(match.group(1)))


def test_no_name_becomes_markup(page: str) -> None:
    assert SCRIPT not in page
    assert "<img src=x" not in page
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "&lt;script&gt;alert(1)" in page  # in the title


def test_names_arrive_whole_all_the_same(page: str, run_data: RunData) -> None:
    facts = embedded(page)
    assert facts["classes"] == run_data.classes
    assert facts["nodes"]["name"] == run_data.names  # type: ignore[index]


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    addresses = set(re.findall(r"\b(?:https?:)?//[\w.-]+", re.sub(r"^\s*//.*$", "", page, flags=re.M)))
    assert addresses <= {"http://www.w3.org"}  # the name of SVG, not a place
    assert not re.search(r"<(?:link|script|img|iframe)[^>]+(?:src|href)=\"(?!data:,)", page)
    assert "default-src 'none'" in page


def test_facts_are_json_without_nan(run_data: RunData) -> None:
    json.dumps(page_data(run_data), allow_nan=False)
    json.dumps(page_data(experiment_run()), allow_nan=False)


def test_rounds_show_means_over_seeds_and_classes() -> None:
    data = page_data(experiment_run())
    assert data["rounds"][0]["test"]["mean"] == pytest.approx(0.5)
    assert data["rounds"][0]["test"]["high"] == pytest.approx(0.5 + 0.1 * 2**0.5)
    assert data["rounds"][1]["adopted"] == [0.5, 0.5, 0.5]
    assert data["rounds"][1]["right"] == pytest.approx(0.75)
    assert data["chosen"] == [1, 0]
    assert data["values"] == [{"round": 1, "taken": [0.3, 0.1], "left": [], "cut": 0.1}]
    assert "map" not in data


def test_marks_are_of_nodes_that_no_model_learned_from(run_data: RunData) -> None:
    data, snapshot = page_data(run_data), run_data.snapshot
    assert snapshot is not None
    assert sum(map(sum, data["confusion"]["counts"])) == 36  # sixty less twenty-four labels
    assert sum(bin["count"] for bin in data["reliability"]["after"]["bins"]) == 36
    held = page_data(fit_run(truth=False))
    assert sum(map(sum, held["confusion"]["counts"])) == int((snapshot.held >= 0).sum())
    assert "also chose the round" in held["confusion"]["of"]


def test_every_pseudo_label_stands_in_the_table_with_its_reasons(run_data: RunData) -> None:
    data, snapshot = page_data(run_data), run_data.snapshot
    assert snapshot is not None
    taken = snapshot.scored_nodes.where(snapshot.scored_nodes.taken)
    names = [data["nodes"]["name"][position] for position in data["pseudo"]["node"]]
    assert names == [run_data.names[node] for node in taken.node.tolist()]
    for position in data["pseudo"]["node"]:
        assert data["around"][str(position)]["influences"]


def test_the_page_and_explain_count_the_same_neighbours(run_data: RunData) -> None:
    snapshot = run_data.snapshot
    assert snapshot is not None
    assert isinstance(snapshot.graph, EdgeList)
    loops = torch.arange(60).repeat(2, 1)
    looped = replace(snapshot, graph=EdgeList(torch.cat([snapshot.graph.edge_index, loops], 1), 60))
    data = page_data(replace(run_data, snapshot=looped))
    numbers = np.arange(60).astype(str)
    for node in range(60):
        explained = explain(looped, node, numbers, run_data.classes, top=12)
        on_page = data["around"][str(node)]
        assert (on_page["degree"], on_page["neighbours"]) == (
            explained.degree,
            [[int(n.node), n.weight] for n in explained.neighbours],
        )


def test_where_no_pseudo_label_was_used_the_page_says_so(run_data: RunData) -> None:
    assert "labelled" in headline(run_data)["lead"]
    unused = replace(run_data, result={**run_data.result, "adopted": 0})
    assert headline(unused)["lead"].endswith(
        "No round of self-training did better than these alone, so the model learned from them only."
    )


def test_a_large_graph_is_sampled_with_labels_first(run_data: RunData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bangs.report.node_data.MAX_DRAWN", 30)
    data = page_data(run_data)
    origin = data["nodes"]["origin"]
    drawn = [origin[position] for position in data["drawn"]]
    assert (len(drawn), data["total"], len(origin)) == (34, 60, 60)
    assert (drawn.count(0), drawn.count(1)) == (18, 6)  # all given and all held nodes


def test_the_configuration_says_how_columns_were_scaled_and_has_a_line_for_every_note(run_data: RunData) -> None:
    config = {"graph": {"notes": ["one", "two"]}, "settings": {"scale": "none"}, "columns": {"columns": [{"scale": 2}]}}
    rows = page_data(replace(run_data, config=config))["config"]
    assert rows == [["graph · notes", "one\ntwo"], ["columns · columns 1 · scale", "2"]]
    config["columns"] = {"columns": [], "structural": None}
    assert ["settings · scale", "none"] in page_data(replace(run_data, config=config))["config"]
