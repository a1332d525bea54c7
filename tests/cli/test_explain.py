"""`bangs explain`: why this label."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bangs import SelfTrainingClassifier
from bangs.errors import InvalidInput
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.store.node_names import node_index
from bangs.utils.text import percent
from tests.cli.invoke import bangs
from tests.conftest import two_rings
from tests.runs.test_snapshot_soft import with_beliefs


def first(fitted_example: Path, source: str) -> dict[str, str]:
    with (fitted_example / "predictions.csv").open(newline="") as file:
        return next(row for row in csv.DictReader(file) if row["source"] == source)


def test_a_pseudo_label_is_explained_with_all_its_reasons(fitted_example: Path) -> None:
    with (fitted_example / "pseudo_labels.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    result = bangs("explain", fitted_example, row["id"])
    assert result.code == 0
    text = " ".join(result.out.split())
    assert text.startswith(f"{row['id']}: ")
    assert f"Adopted in round 1 as '{row['label']}'" in text
    assert "number 1 of" in text
    assert "The value says how much its label adds to what the model would know of the other nodes" in text
    assert "Neighbours, " in text
    assert "Closest labelled nodes in the graph and their shares, by personalised PageRank on the edges" in text
    assert row["influences"].split(" (")[0] in text
    assert "Predictions over the rounds: " in text


def test_a_pseudo_label_without_older_labels_around_says_when_that_was() -> None:
    graph = citation(nodes=90, classes=3, seed=0)
    graph.y[60:] = -1
    graph.edge_index = graph.edge_index[:, ((graph.edge_index < 60).sum(0) != 1)]  # no label reaches nodes 60 to 89
    model = SelfTrainingClassifier(method="hard", validation=0.25, rounds=1, k=20, epochs=20).fit(graph)
    explanations = [why for why in map(model.explain, range(60, 90)) if why.adoption is not None]
    assert len(explanations) == 20
    for why in explanations:
        assert "No labelled node was within reach when it was adopted: its own features decide." in str(why)


@pytest.mark.parametrize(("source", "words"), [("given", "was given"), ("held", "was held back for validation")])
def test_where_a_label_comes_from_is_said(fitted_example: Path, source: str, words: str) -> None:
    row = first(fitted_example, source)
    result = bangs("explain", fitted_example, row["id"])
    assert f"{row['id']}: label {row['known']} {words}; the model predicts {row['predicted']}, " in " ".join(
        result.out.split()
    )


def test_json_holds_names_not_numbers(fitted_example: Path) -> None:
    row = first(fitted_example, "predicted")
    facts = json.loads(bangs("explain", fitted_example, row["id"], "--json", "--top", 2).out)
    assert facts["node"] == row["id"]
    assert facts["label"] == row["predicted"]
    assert facts["origin"] == "predicted"
    assert len(facts["influences"]) == len(facts["neighbours"]) == 2
    assert sum(facts["support"].values()) == pytest.approx(1, abs=1e-4)
    assert [step["round"] for step in facts["path"]] == [0, 1, 2, 3]


def test_python_gives_the_same_names_words_and_text(fitted_example: Path) -> None:
    row = first(fitted_example, "predicted")
    why = SelfTrainingClassifier.load(fitted_example).explain(row["id"])
    assert (why.node, why.label) == (row["id"], row["predicted"])
    assert why.to_dict() == json.loads(bangs("explain", fitted_example, row["id"], "--json").out)
    assert str(why).split() == bangs("explain", fitted_example, row["id"]).out.split()


def test_it_imports_neither_pyg_nor_scikit_learn_nor_the_readers_of_tables(fitted_example: Path) -> None:
    code = f"""if True:
        import sys
        sys.argv = ["bangs", "explain", {str(fitted_example)!r}, {first(fitted_example, "predicted")["id"]!r}]
        from bangs.cli import main
        slow = {{"torch_geometric", "sklearn", "pandas", "pyarrow", "triton", "scipy.sparse"}}
        try:
            main()
        except SystemExit:
            print(sorted(slow & sys.modules.keys()))
        """
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert process.stdout.splitlines()[-1] == "[]"


def test_a_soft_label_is_explained_from_the_saved_model(tmp_path: Path) -> None:
    model = SelfTrainingClassifier(rounds=0, epochs=2).fit(two_rings(60, 3))
    model.snapshot_, _ = with_beliefs()
    model.save(tmp_path)
    text = " ".join(bangs("explain", tmp_path, "40").out.split())
    assert "Its soft label in round" in text
    assert "times the mean weight of a given label" in text
    facts = json.loads(bangs("explain", tmp_path, "40", "--json").out)
    assert sum(facts["soft"]["probs"].values()) == pytest.approx(1, abs=1e-5)
    assert facts["adoption"] is None


def test_an_unknown_node_gives_a_clear_error(fitted_example: Path) -> None:
    result = bangs("explain", fitted_example, "R-9")
    assert result.code == 2
    assert "no node is called 'R-9'; names look like 'R-0001'" in result.err


def test_a_folder_without_a_model_gives_a_clear_error(tmp_path: Path) -> None:
    result = bangs("explain", tmp_path, "x")
    assert result.code == 2
    assert "does not exist; name a folder that `bangs fit` wrote" in result.err


def test_a_label_against_its_labelled_influences_says_what_decided(fitted_example: Path) -> None:
    model = SelfTrainingClassifier.load(fitted_example)
    for node in range(60):
        why = model.explain(node)
        against = bool(why.influences) and max(why.support, key=why.support.__getitem__) != why.label
        assert ("By these shares it would be" in str(why)) == against


def test_long_names_are_cut_where_they_are_examples() -> None:
    with pytest.raises(InvalidInput, match=r"^no node is called 'x+…'; names look like 'y+…', 'z'$") as refusal:
        node_index("x" * 5000, np.array(["y" * 5000, "z"], dtype=object))
    assert len(str(refusal.value)) < 200


def test_for_a_mean_of_models_the_text_says_whose_rounds_are_shown(tmp_path: Path) -> None:
    graph = citation(nodes=90, classes=3, seed=0)
    graph.y[45:] = -1
    alone = SelfTrainingClassifier("sgc", validation=0.25, rounds=1, epochs=10).fit(graph).explain(50)
    assert alone.model is None
    assert "One of the" not in str(alone)
    several = SelfTrainingClassifier(rounds=1).fit(graph)
    several.save(tmp_path)
    first = several.leaderboard_[0]
    name = f"{first['model']} · {first['method']} · {first['features']}"
    message = f"One of the {len(several.members_)} models, {name} ({percent(first['weight'], 0)} of the weight):"
    for why in (several.explain(50), SelfTrainingClassifier.load(tmp_path).explain(50)):
        assert why.model is not None
        assert why.model.models == len(several.members_)
        assert message in str(why)
    assert message in " ".join(bangs("explain", tmp_path, "50").out.split())
