"""`bangs suggest`, `bangs label` and `bangs fit --labels` as commands."""

import http.client
import json
import signal
from pathlib import Path

import pytest

from bangs.cli.table_paths import read_fitted_tables
from bangs.runs import read_run
from bangs.runs.checksummed_json import read_checksummed, write_checksummed
from tests.cli.invoke import bangs
from tests.labelling.folders import Command, answers_in, queue_folder, small_graph

QUICK = ("--device=cpu", "--quiet")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suggest")
    graph = small_graph(folder / "graph")
    assert bangs("fit", graph, "--out", folder / "fit", "--time-limit=1", *QUICK).code == 0
    return folder


def test_suggestions_are_told_and_written_as_csv_and_json(fitted: Path, tmp_path: Path) -> None:
    result = bangs("suggest", fitted / "fit", "--count=3")
    assert result.code == 0
    assert "Label these next" in result.out
    facts = json.loads(bangs("suggest", fitted / "fit", "--count=3", "--json").out)
    assert [node["rank"] for node in facts["nodes"]] == [1, 2, 3]
    for name in ("next.csv", "next.json"):
        assert bangs("suggest", fitted / "fit", "--count=3", "--out", tmp_path / name).code == 0
        assert facts["nodes"][0]["node"] in (tmp_path / name).read_text()
    assert bangs("suggest", fitted / "fit", "--count=3", "--out", tmp_path / "next.csv").code == 0


def test_a_file_of_someone_else_is_not_replaced(fitted: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("mine\n")
    result = bangs("suggest", fitted / "fit", "--out", tmp_path / "mine.csv")
    assert result.code == 2
    assert "was not written by `bangs suggest`" in result.err
    assert bangs("suggest", fitted / "fit", "--out", tmp_path / "next.txt").code == 2


def test_an_unknown_strategy_is_refused_with_a_sentence(fitted: Path) -> None:
    for words in (("suggest", fitted / "fit"), ("label", fitted / "graph", "--prepare")):
        result = bangs(*words, "--strategy=entropie")
        assert result.code == 2
        assert "did you mean 'entropy'" in result.err


def test_a_fit_learns_the_labels_of_a_page(fitted: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(
        "number,time,id,action,label\n1,2026-01-01,n20,label,elm\n2,2026-01-01,n21,label,elm\n"
    )
    words = ("fit", fitted / "graph", "--labels", tmp_path / "labels.csv", "--out", tmp_path / "fit", "--time-limit=1")
    output = bangs(*words, "--device=cpu", "--json")
    assert output.code == 0
    result = json.loads(output.out)
    assert result["given"] == 14
    assert "elm" in result["classes"]


def test_a_second_server_on_the_same_folder_is_refused_and_ctrl_c_ends_the_first(fitted: Path, tmp_path: Path) -> None:
    out = queue_folder(tmp_path / "out")
    with Command(fitted / "graph", out) as first:
        result = bangs("label", fitted / "graph", "--out", out, *QUICK)
        assert result.code == 2
        assert f"is in use by process {first.process.pid}" in result.err
        first.process.send_signal(signal.SIGINT)
        assert first.process.wait(60) == 0
        assert first.process.stdout is not None
        assert "0 answers in" in first.process.stdout.read()
    assert (out / "lock").read_text() == ""
    assert answers_in(out) == []


def test_a_folder_with_other_files_is_refused(fitted: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    result = bangs("label", fitted / "graph", "--out", tmp_path, *QUICK)
    assert result.code == 2
    assert "holds other files (such as 'letter.txt')" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("flags", [(), ("--prepare",)])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("lock", "my own lock"),
        ("queue.json", '{"jobs": []}'),
        ("progress.jsonl", '{"percent": 3}\n'),
        ("labels.csv", "my notes"),
    ],
)
def test_files_of_others_under_the_names_of_a_labelling_are_never_touched(
    fitted: Path, tmp_path: Path, name: str, content: str, flags: tuple[str, ...]
) -> None:
    (tmp_path / name).write_text(content)
    result = bangs("label", fitted / "graph", "--out", tmp_path, *flags, *QUICK)
    assert result.code == 2
    assert name in result.err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, content)]


def test_there_is_nothing_to_look_at_where_nothing_is(fitted: Path, tmp_path: Path) -> None:
    result = bangs("label", fitted / "graph", "--out", tmp_path / "none", "--read-only", *QUICK)
    assert result.code == 2
    assert "is not a folder; name one that `bangs label` wrote" in result.err


def test_a_fit_that_fails_is_told_in_the_terminal_and_on_the_page(tmp_path: Path) -> None:
    graph = small_graph(tmp_path / "graph")
    (graph / "edges.csv").write_text("source,target\nn1,nobody\n")
    with Command(graph, tmp_path / "out") as server:
        assert server.process.stderr is not None
        assert "The last fit failed" in server.process.stderr.readline()
        port, token = server.address.removeprefix("http://127.0.0.1:").split("/")[:2]
        line = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
        line.request("GET", f"/{token}/state")
        state = json.loads(line.getresponse().read())
        line.close()
        assert "nobody" in state["fault"]
        assert not state["fitting"]


def test_a_graph_that_is_not_there_is_refused_before_a_page_is_served(tmp_path: Path) -> None:
    result = bangs("label", tmp_path / "none", "--out", tmp_path / "out", *QUICK)
    assert result.code == 2
    assert "does not exist" in result.err


def answered(folder: Path, *rows: str) -> Path:
    """A labels.csv of these nodes and labels, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{number},2026-01-01,{row}" for number, row in enumerate(rows, 1)]
    (folder / "labels.csv").write_text("\n".join(["number,time,id,action,label", *lines, ""]))
    return folder / "labels.csv"


def fit_again(tmp_path: Path) -> Path:
    """A fit with a column left out, another method and labels of an earlier page, in `tmp_path / "fit"`."""
    graph = small_graph(tmp_path / "graph")
    labels = answered(tmp_path / "earlier", "n20,label,elm", "n21,label,elm")
    words = ("--labels", labels, "--ignore=c", "--method=raw", "--model=sgc", "--epochs=5")
    assert bangs("fit", graph, "--out", tmp_path / "fit", *words, *QUICK).code == 0
    return tmp_path / "fit"


def test_a_fit_is_labelled_from_its_tables_with_its_options_its_labels_and_its_method(tmp_path: Path) -> None:
    fit = fit_again(tmp_path)
    answered(tmp_path / "fit-labels", "n30,label,elm", "n31,skip,")
    assert bangs("label", fit, "--prepare", *QUICK).code == 0
    refit = tmp_path / "fit-labels" / "fit"
    config = json.loads((refit / "config.json").read_text())["config"]
    assert config["graph"]["name"] == "graph"
    assert config["parts"]["model"] == "sgc"
    assert config["parts"]["method"] == "raw"
    assert config["settings"]["epochs"] == 5
    assert config["columns"]["left_out"] == ["c"]
    assert json.loads((refit / "result.json").read_text())["result"]["given"] == 15
    cards = json.loads((tmp_path / "fit-labels" / "queue.json").read_text())["cards"]
    assert cards[0]["cells"]
    assert not {"n20", "n21", "n30", "n31"} & {card["node"] for card in cards}


def test_a_labelling_goes_on_from_its_folder_and_from_its_newest_fit(tmp_path: Path) -> None:
    fit_again(tmp_path)
    answered(tmp_path / "fit-labels", "n30,label,elm")
    labelling = tmp_path / "fit-labels"
    assert bangs("label", tmp_path / "fit", "--prepare", *QUICK).code == 0
    for given in (labelling, labelling / "fit"):
        assert bangs("label", given, "--prepare", *QUICK).code == 0
        assert json.loads((labelling / "fit" / "result.json").read_text())["result"]["given"] == 15
    assert sorted(path.name for path in tmp_path.iterdir()) == ["earlier", "fit", "fit-labels", "graph"]


def test_a_fit_and_its_tables_can_be_moved_together_and_what_is_gone_is_named(tmp_path: Path) -> None:
    fit_again(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    fit = tmp_path / "there" / "fit"
    assert bangs("label", fit, "--prepare", *QUICK).code == 0
    (tmp_path / "there" / "graph").rename(tmp_path / "elsewhere")
    for flags in ((), ("--prepare",)):
        result = bangs("label", fit, "--out", tmp_path / "out", *flags, *QUICK)
        assert result.code == 2
        assert f"was fitted on '{tmp_path}/there/graph', which is not there any more" in result.err
        assert "give the tables where they are now: bangs label TABLES" in result.err
        assert not (tmp_path / "out").exists()
    (fit / "tables.json").unlink()
    result = bangs("label", fit, "--out", tmp_path / "out", *QUICK)
    assert result.code == 2
    assert "does not say which tables it was fitted on" in result.err


def test_labelling_sees_of_nodes_what_the_fit_was_told_to_see(tmp_path: Path) -> None:
    """Tables without features get structural ones, and the fit looked at the structure beside them."""
    graph = small_graph(tmp_path / "graph")
    rows = [line.split(",") for line in (graph / "nodes.csv").read_text().splitlines()]
    positions = [rows[0].index(name) for name in ("id", "label")]
    (graph / "nodes.csv").write_text("".join(",".join(row[position] for position in positions) + "\n" for row in rows))
    words = ("--features=both", "--model=sgc", "--method=raw", "--epochs=5")
    assert bangs("fit", graph, "--out", tmp_path / "fit", *words, *QUICK).code == 0
    assert bangs("label", tmp_path / "fit", "--out", tmp_path / "labels", "--prepare", *QUICK).code == 0
    for fit in (tmp_path / "fit", tmp_path / "labels" / "fit"):
        assert read_run(fit).config["parts"]["features"] == "both"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("path", 3), ("path", "a\0b"), ("labels", 7), ("labels", [None]), ("options", []), ("options", {"x": 1})),
        *(("options", {"ignore": "c"}), ("options", {"directed": 1}), ("options", {"id": ["a"]})),
        *(("options", {"encoding": {}}), ("options", {"limits": 3}), ("learner", {"model": "nosuch"})),
        *(("learner", {"model": {"part": "eval"}}), ("learner", {"nosuch": 1}), ("learner", None)),
    ],
)
def test_a_strangers_note_of_its_tables_is_refused_in_a_sentence(
    fitted: Path, tmp_path: Path, name: str, value: object
) -> None:
    fit = tmp_path / "fit"
    fit.mkdir()
    content = read_checksummed(fitted / "fit" / "tables.json")
    assert content is not None
    write_checksummed(fit / "tables.json", {**content, "path": str(fitted / "graph"), name: value})
    result = bangs("label", fit, "--out", tmp_path / "out", "--prepare", *QUICK)
    assert result.code == 2
    assert "tables.json' is not as `bangs fit` writes it" in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc", "/dev/zero"])
def test_a_fit_that_names_a_strange_place_gets_a_sentence_that_tells_nothing_of_it(
    fitted: Path, tmp_path: Path, path: str
) -> None:
    content = read_checksummed(fitted / "fit" / "tables.json")
    assert content is not None
    for names in ({"path": path}, {"path": str(fitted / "graph"), "labels": [path]}):
        write_checksummed(tmp_path / "tables.json", {**content, **names})
        result = bangs("label", tmp_path, "--out", tmp_path / "out", "--prepare", *QUICK)
        assert result.code == 2
        assert result.err.startswith("bangs: ")
        assert "root" not in result.err + result.out


def test_a_fit_from_before_class_weights_is_labelled_without_them(fitted: Path, tmp_path: Path) -> None:
    content = read_checksummed(fitted / "fit" / "tables.json")
    assert content is not None
    assert content["learner"].pop("class_weight") == "auto"
    write_checksummed(tmp_path / "tables.json", {**content, "path": str(fitted / "graph")})
    assert read_fitted_tables(tmp_path)[1]["class_weight"] is None
    assert read_fitted_tables(fitted / "fit")[1]["class_weight"] == "auto"
