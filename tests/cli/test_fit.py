"""`bangs fit`: from two tables to a folder of results."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bangs import SelfTrainingClassifier
from bangs.cli.fit_messages import final_summary
from bangs.runs import RunFolder, read_run
from bangs.runs.checksummed_json import write_checksummed
from tests.cli.conftest import EXAMPLES
from tests.cli.invoke import bangs
from tests.helpers.forking import FORKING

HARD = ("--method", "hard", "--validation", 0.25)
QUICK = (*HARD, "--rounds", 1, "--epochs", 5, "--quiet")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_everything_promised_is_there(library: Path) -> None:
    wanted = {"predictions.csv", "pseudo_labels.csv", "model.safetensors", "config.json", "MODEL_CARD.md"}
    wanted |= {"history.jsonl", "report.html", "result.json", "environment.json"}
    assert wanted <= set(os.listdir(library))


def test_predictions_keep_ids_and_labels_and_say_where_a_label_comes_from(library: Path) -> None:
    predicted, given = rows(library / "predictions.csv"), rows(EXAMPLES / "own-graph" / "nodes.csv")
    assert [row["id"] for row in predicted] == [row["id"] for row in given]
    assert [row["known"] for row in predicted] == [row["label"] for row in given]
    assert {row["source"] for row in predicted} <= {"given", "held", "adopted", "predicted"}
    for row in predicted:
        probs = {name.removeprefix("p_"): float(value) for name, value in row.items() if name.startswith("p_")}
        assert sum(probs.values()) == pytest.approx(1, abs=1e-4)
        assert probs[row["predicted"]] == pytest.approx(max(probs.values())) == pytest.approx(float(row["confidence"]))
        assert bool(row["known"]) == (row["source"] in ("given", "held"))
        assert bool(row["round"]) == (row["source"] == "adopted")


@pytest.mark.parametrize(
    ("model", "expected"), [("gat", True), ("gin", True), ("gcn", False), ("gin --ignore weight", False)]
)
def test_a_model_that_takes_all_edges_alike_is_told_where_they_have_weights(
    tmp_path: Path, model: str, expected: bool
) -> None:
    (tmp_path / "nodes.csv").write_text(
        "id,x,label\n" + "".join(f"{i},{i},{'ab'[i % 2]}\n" for i in range(8)) + "8,1,\n"
    )
    (tmp_path / "edges.csv").write_text("source,target,weight\n" + "".join(f"{i},{i + 1},{i + 1}\n" for i in range(8)))
    words = ("--model", *model.split(), *HARD, "--rounds", 1, "--epochs", 2, "--out", tmp_path / "out")
    result = bangs("fit", tmp_path, *words)
    assert result.code == 0, result.err
    assert ("ignores edge weights" in result.err + result.out) == expected


def test_every_pseudo_label_has_its_reasons(library: Path) -> None:
    pseudo, history = rows(library / "pseudo_labels.csv"), (library / "history.jsonl").read_text().splitlines()
    adopted = [len(json.loads(line)["adopted"][0]["node"]) for line in history]
    assert len(pseudo) == sum(adopted) > 0
    assert [int(row["round"]) for row in pseudo] == [t for t, count in enumerate(adopted) for _ in range(count)]
    for row in pseudo:
        assert 0 < float(row["confidence_before"]) <= 1
        assert 0 < float(row["confidence"]) <= 1
        assert float(row["value"]) > 0
        assert float(row["stderr"]) >= 0
        assert row["used"] in ("yes", "no")
        assert row["influences"].count("%") == 3


def test_the_model_loads_and_says_what_the_table_says(library: Path) -> None:
    model = SelfTrainingClassifier.load(library)
    table = rows(library / "predictions.csv")
    assert model.predict().tolist() == [row["predicted"] for row in table]
    assert model.node_names_.tolist() == [row["id"] for row in table]
    assert model.classes_.tolist() == ["cookery", "crime", "history", "science fiction"]


def test_the_card_names_classes_counts_and_limits(library: Path) -> None:
    card = (library / "MODEL_CARD.md").read_text()
    for words in ("cookery, crime, history, science fiction", "22 labelled nodes", "optimistic", "What it is not"):
        assert words in card


def test_only_the_note_of_its_tables_tells_where_on_the_disk_it_was_made(library: Path) -> None:
    assert json.loads((library / "tables.json").read_text())["tables"]["path"].endswith("examples/own-graph")
    for path in library.iterdir():
        if path.is_file() and path.name != "tables.json":
            text = path.read_bytes()
            assert str(library).encode() not in text
            assert str(EXAMPLES).encode() not in text


def test_the_same_seed_gives_the_same_tables(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert bangs("fit", EXAMPLES / "own-graph", "--out", tmp_path / name, "--seed", 4, *QUICK).code == 0
    for file in ("predictions.csv", "pseudo_labels.csv"):
        assert (tmp_path / "one" / file).read_text() == (tmp_path / "two" / file).read_text()


def test_two_fits_on_one_folder_do_not_mix(tmp_path: Path) -> None:
    with RunFolder.create_or_resume(tmp_path / "out", {"another": "fit"}, resume=False):
        result = bangs("fit", EXAMPLES / "own-graph", "--out", tmp_path / "out", *QUICK)
    assert result.code == 2
    assert "is in use by this very process since" in result.err or f"process {os.getpid()}" in result.err


def test_a_finished_folder_is_not_touched_again(library: Path) -> None:
    before = (library / "predictions.csv").stat().st_mtime_ns
    refused = bangs("fit", EXAMPLES / "own-graph", "--out", library, *HARD, "--rounds", 3, "--epochs", 30)
    assert refused.code == 2
    assert "already holds a finished run" in refused.err
    result = bangs(
        "fit", EXAMPLES / "own-graph", "--out", library, *HARD, "--rounds", 3, "--epochs", 30, "--resume", "--json"
    )
    assert result.code == 0
    assert json.loads(result.out)["rounds"] == 3
    assert (library / "predictions.csv").stat().st_mtime_ns == before


def test_a_killed_fit_ends_with_the_files_of_an_undisturbed_one(tmp_path: Path) -> None:
    # the first attempt writes three files and the checkpoint of round 0, the second that of round 1; then come tables
    command = [sys.executable, "-m", "tests.cli.kill_fits", str(tmp_path), "5", "2", "4", "7"]
    process = subprocess.run(command, capture_output=True, text=True, check=True, env=FORKING, cwd=EXAMPLES.parent)
    facts = json.loads(process.stdout)
    assert facts == {"differ": [], "kills": 4, "rounds": [0, 1, 1, 2, 2, 3]}


def test_an_interrupted_fit_says_how_to_go_on_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("fit", EXAMPLES / "own-graph", "--out", tmp_path / "out", *HARD, "--rounds", 2, "--epochs", 5)
    with monkeypatch.context() as patch:
        patch.setattr("bangs.cli.console.Rounds.tell", lambda view, line: os.kill(os.getpid(), signal.SIGTERM))
        stopped = bangs(*words)
    assert stopped.code == 143
    assert f"continue with: bangs fit {EXAMPLES / 'own-graph'} --out {tmp_path / 'out'}" in stopped.err
    assert "--resume" in stopped.err
    resumed = bangs(*words, "--resume")
    assert resumed.code == 0, resumed.err
    assert "continuing after round 0" in resumed.out
    assert not list((tmp_path / "out" / "checkpoints").iterdir())


def test_a_wrong_setting_leaves_the_folder_as_it_was(library: Path) -> None:
    before = {path.name: path.read_bytes() for path in library.iterdir() if path.is_file()}
    for words in (("--model", "gnn"), ("--k", 0), ("--validation", 2), ("--device", "tpu")):
        assert bangs("fit", EXAMPLES / "own-graph", "--out", library, "--overwrite", *words).code == 2
    assert before == {path.name: path.read_bytes() for path in library.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("adopted", "tried", "first"),
    [
        (112, 140, "112 labelled by the model itself (28 more after the chosen round, not used)"),
        (42, 42, "8 held for validation, 42 labelled by the model itself"),
        (0, 140, "8 held for validation"),
    ],
)
def test_the_last_words_say_what_self_training_did(adopted: int, tried: int, first: str) -> None:
    validation = {"nodes": 8, "accuracy": 1.0, "interval": [0.68, 1.0], "raw": 0.875, "error_before": 0.2}
    validation |= {"error_after": 0.1, "error_interval": [0.0, 0.3]}
    result = {"nodes": 300, "given": 22, "held": 8, "chosen": 3, "adopted": adopted, "adopted_in_all": tried}
    result |= {"folds": False, "leaderboard": [], "largest_share": 0.3, "no_better_than_chance": False}
    result |= {"rounds": 3, "soft": False}
    lines = final_summary({**result, "validation": validation, "test": None}, Path("out")).splitlines()
    assert lines[0].endswith(first)
    assert lines[1].endswith("; they chose the round, so their accuracy is optimistic")
    for other, words in (({"rounds": 0}, "they decided when training stopped"), ({"folds": True}, "")):
        line = final_summary({**result, "validation": validation, "test": None, **other}, Path("out")).splitlines()[1]
        assert "chose the round" not in line
        assert words in line
    assert lines[1].startswith("accuracy 100.0% on 8 held-out labels (95 % interval 68.0% to 100.0%")
    doubtful = {**result, "validation": validation, "test": None, "no_better_than_chance": True}
    warned = final_summary(doubtful, Path("out"))
    assert "warning: always predicting the largest class might be as good" in warned


def test_json_is_one_object_and_nothing_else(tmp_path: Path) -> None:
    result = bangs(
        "fit", EXAMPLES / "own-graph", "--out", tmp_path / "out", *HARD, "--rounds", 1, "--epochs", 5, "--json"
    )
    facts = json.loads(result.out)
    assert facts["nodes"] == 300
    assert facts == {**read_run(tmp_path / "out").result, "out": "out"}  # type: ignore[dict-item]


def test_formulas_in_names_are_defused_in_tables_and_kept_everywhere_else(tmp_path: Path) -> None:
    hostile(tmp_path / "graph")
    assert bangs("fit", tmp_path / "graph", "--out", tmp_path / "out", *QUICK).code == 0
    ids = [row["id"] for row in rows(tmp_path / "out" / "predictions.csv")]
    assert ids[:4] == ["'=1+1", "'@cmd", "-5", "<script>alert(1)</script>"]
    assert SelfTrainingClassifier.load(tmp_path / "out").node_names_[0] == "=1+1"
    assert {row["predicted"] for row in rows(tmp_path / "out" / "predictions.csv")} <= {"'+danger", "</script>"}


def test_test_labels_only_mark(tmp_path: Path) -> None:
    folder = tmp_path / "graph"
    hostile(folder, test=True)
    assert bangs("fit", folder, "--out", tmp_path / "out", *QUICK).code == 0
    result = read_run(tmp_path / "out").result
    assert result is not None
    assert result["test"]["nodes"] == 20
    assert result["given"] + result["held"] == 20
    table = rows(tmp_path / "out" / "predictions.csv")
    assert [row["known"] for row in table[20:]] == [""] * 20


def test_a_class_with_one_label_is_learned_and_its_name_told(tmp_path: Path) -> None:
    folder = tmp_path / "graph"
    hostile(folder)
    table = (folder / "nodes.csv").read_text().splitlines()
    table[-1] = table[-1].replace(",,", ",emu,")
    (folder / "nodes.csv").write_text("\n".join(table))
    result = bangs("fit", folder, "--out", tmp_path / "out", "--model", "sgc", "--rounds", 0, "--epochs", 5)
    assert result.code == 0, result.err
    assert "one label only for 'emu': all models learn it, so no accuracy is known for this class" in result.out
    held = bangs("fit", folder, "--out", tmp_path / "held", *QUICK)
    assert held.code == 2
    assert "label 'emu' is seen once; a node cannot be both learned from and validated on" in held.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--model", "gnn"), "model 'gnn' is unknown"),
        (("--fill", "zero"), "--fill must be 'mean'"),
        (("--label", "nosuch"), "nosuch"),
        (("--rounds", -1), "rounds must be a whole number from 0"),
    ],
)
def test_mistakes_are_sentences(tmp_path: Path, words: tuple[object, ...], sentence: str) -> None:
    result = bangs("fit", EXAMPLES / "own-graph", "--out", tmp_path / "out", "--quiet", *words)
    assert result.code == 2
    assert sentence in result.err
    assert "Traceback" not in result.err


def hostile(folder: Path, test: bool = False) -> None:
    """Forty nodes in two classes with names that would like to be code; half of them labelled."""
    folder.mkdir()
    names = ["=1+1", "@cmd", "-5", "<script>alert(1)</script>", *(f"n{i}" for i in range(36))]
    labels = ["+danger", "</script>"]
    with (folder / "nodes.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "size", "label", "split"])
        for i, name in enumerate(names):
            known = i < 20 or test
            out.writerow([name, i % 2 + i / 100, labels[i % 2] if known else "", "" if not test or i < 20 else "test"])
    with (folder / "edges.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["source", "target"])
        out.writerows([names[i], names[(i + 2) % 40]] for i in range(40))


def test_a_fit_from_before_class_weights_goes_on_where_all_labels_count_alike(tmp_path: Path) -> None:
    words = ("fit", EXAMPLES / "own-graph", "--out", tmp_path / "out", *QUICK, "--class-weight", "none")
    assert bangs(*words).code == 0
    config = read_run(tmp_path / "out").config
    config["settings"].pop("class_weight", None)
    write_checksummed(tmp_path / "out" / "config.json", config)
    assert bangs(*words, "--resume").code == 0
    again = bangs(*words[:-1], "balanced", "--resume")
    assert again.code == 2
    assert "settings.class_weight" in again.err
