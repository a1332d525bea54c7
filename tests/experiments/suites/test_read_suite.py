"""Suite files: what is in them is what runs, and every mistake is a sentence that names file and key."""

import os
import tomllib
from pathlib import Path

import pytest

from bangs.errors import InvalidInput, UnknownName
from bangs.experiments.suites.find_suite import suite_files, suite_path
from bangs.experiments.suites.read_suite import parse_suite, read_suite
from bangs.experiments.suites.suite import Published
from bangs.utils.text import plain_name

GOOD = """
title = "Two methods"
focus = "bangs"
[experiment]
rounds = 3
seeds = 4
[axes]
dataset = ["cora", "somewhere.npz"]
method = ["raw", "bangs"]
[published]
protocol = "best"
somewhere = "none"
[published.cora]
raw = [80.0, 0.5]
bangs = 84
"""


def error_message(text: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        parse_suite(text, "mine", "mine.toml")
    return str(caught.value)


def test_a_suite_is_every_combination_of_its_axes() -> None:
    suite = parse_suite(GOOD, "mine", "mine.toml")
    cells = list(suite.cells())
    assert [(cell.row, cell.column) for cell in cells] == [
        ("cora", "raw"),
        ("cora", "bangs"),
        ("somewhere", "raw"),
        ("somewhere", "bangs"),
    ]
    assert cells[1].experiment.seeds == (0, 1, 2, 3)
    assert cells[1].experiment.rounds == 3
    assert suite.published == {("cora", "raw"): Published((80.0, 0.5)), ("cora", "bangs"): Published((84.0,))}


def test_a_suite_can_be_narrowed() -> None:
    suite = parse_suite(GOOD, "mine", "mine.toml")
    (cell,) = suite.cells({"dataset": ["somewhere"], "method": ["bangs"]}, seeds=[7])
    assert (cell.experiment.dataset, cell.experiment.seeds) == ("somewhere.npz", (7,))
    assert list(suite.cells({"dataset": ["elsewhere/somewhere.npz"], "method": ["bangs"]}, seeds=[7])) == [cell]


def test_a_path_is_called_by_its_last_part() -> None:
    names = {"cora": "cora", "graphs/papers": "papers", "my/graphs/one.npz": "one", "one.npz": "one"}
    assert {name: plain_name(name) for name in names} == names


def test_a_value_of_an_axis_may_set_several_things_at_once() -> None:
    text = """
kind = "sweep"
rows = "method"
columns = "k"
[axes]
method = ["bangs"]
k = [{ k = 0, method = "raw" }, { k = 5, candidates = 10 }]
"""
    raw, small = parse_suite(text, "mine", "mine.toml").cells()
    assert (raw.row, raw.column, raw.experiment.method) == ("bangs", "0", "raw")
    assert (small.experiment.k, small.experiment.candidates) == (5, 10)


@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        ('titel = "x"', 'title = "Two methods"', ["mine.toml: titel", "did you mean 'title'?"]),
        ("roundz = 3", "rounds = 3", ["mine.toml: experiment.roundz", "did you mean 'rounds'?"]),
        ("rounds = -1", "rounds = 3", ["mine.toml: experiment.rounds", "from 0 to 1,000,000,000, got -1"]),
        ('rounds = "many"', "rounds = 3", ["mine.toml: experiment.rounds", "whole number", "'many'"]),
        ("seeds = [1, 1]", "seeds = 4", ["mine.toml: experiment.seeds", "must differ"]),
        ('dataset = ["coar"]', 'dataset = ["cora", "somewhere.npz"]', ["axes.dataset[0]", "did you mean 'cora'?"]),
        ('method = ["raw", "bang"]', 'method = ["raw", "bangs"]', ["axes.method[1]", "did you mean 'bangs'?"]),
        ("method = []", 'method = ["raw", "bangs"]', ["axes.method", "list of values"]),
        ("k = [5, -5]\nmethod = [", "method = [", ["mine.toml: axes.k[1]", "from 0 to 1,000,000,000, got -5"]),
        ('focus = "cpl"', 'focus = "bangs"', ["mine.toml: focus", "Known: bangs, raw"]),
        ("", "bangs = 84\n", ["mine.toml: published.cora.bangs is missing", '"none"']),
        ("", 'somewhere = "none"\n', ["mine.toml: published.somewhere is missing"]),
        ("bangz = 84", "bangs = 84", ["mine.toml: published.cora.bangz", "did you mean 'bangs'?"]),
        ("bangs = [1, 2, 3]", "bangs = 84", ["mine.toml: published.cora.bangs", "[mean, std]"]),
        ("rounds = = 3", "rounds = 3", ["mine.toml is not valid TOML"]),
        ("changes = { epoch = 3 }", "rounds = 3", ["experiment.changes", "did you mean 'epochs'?"]),
        ('changes = { epochs = "x" }', "rounds = 3", ["mine.toml: experiment.changes", "whole number, got 'x'"]),
        ('recipe = "paper"\nk = 7', "rounds = 3", ["the recipe 'paper' sets k itself"]),
        (
            "k = 7\ncandidates = 3",
            "rounds = 3",
            ["mine.toml: the run with dataset = cora, method = bangs", "K = 3 and k"],
        ),
        ("share = 0.0", "rounds = 3", ["mine.toml: experiment.share", "between 0 and 0.85", "got 0.0"]),
        ('[names]\nbnags = "B"\n[published]', "[published]", ["mine.toml: names.bnags", "did you mean 'bangs'?"]),
        ('rows = ["dataset", "dataset"]', 'title = "Two methods"', ["mine.toml: rows must not name the axis dataset"]),
        (
            'rows = ["dataset", "method"]\ncolumns = "method"',
            'title = "Two methods"',
            ["mine.toml: columns must not name the axis method again"],
        ),
    ],
)
def test_a_mistake_gives_a_clear_error_that_names_file_and_key(wrong: str, right: str, words: list[str]) -> None:
    assert right in GOOD
    message = error_message(GOOD.replace(right, wrong))
    assert all(word in message for word in words), message


def test_an_axis_that_stands_nowhere_in_the_table_is_refused() -> None:
    assert "axes.noise" in error_message('[axes]\nmethod = ["raw"]\ndataset = ["cora"]\nnoise = [0.0, 0.1]')


@pytest.mark.parametrize("key", ["rows", "columns"])
def test_an_axis_that_is_put_on_one_side_does_not_stand_on_the_other(key: str) -> None:
    suite = parse_suite(f'{key} = ["dataset", "method"]\n[axes]\nmethod = ["raw"]\ndataset = ["cora"]', "mine", "it")
    assert (suite.rows, suite.columns)[:: -1 if key == "columns" else 1] == (("dataset", "method"), ())


def test_a_sweep_runs_along_one_axis() -> None:
    assert "columns" in error_message('kind = "sweep"\n[axes]\nmethod = ["raw", "cpl"]')


@pytest.mark.parametrize("kind", ["rounds", "stages"])
def test_rounds_and_stages_have_columns_of_their_own(kind: str) -> None:
    message = error_message(
        f'kind = "{kind}"\ncolumns = "dataset"\n[axes]\nmethod = ["raw"]\ndataset = ["cora", "pubmed"]'
    )
    assert message.startswith("mine.toml: columns must be left out")


def test_what_a_sweep_runs_along_are_numbers() -> None:
    message = error_message('kind = "sweep"\ncolumns = "calibrator"\n[axes]\nmethod = ["bangs"]\ncalibrator = ["ets"]')
    assert message == "mine.toml: axes.calibrator[0] must be a number, as a sweep runs along it, got 'ets'"


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ('dataset = ["a/g.npz", "b/g.npz"]', ["mine.toml: dataset", "a/g.npz and b/g.npz", "rename one of the files"]),
        (
            'setting = [{ setting = "one", dataset = "a/g.npz" }, { setting = "other", dataset = "b/g.npz" }]',
            ["a/g.npz and b/g.npz", "which results could not tell apart"],
        ),
        (
            "k = [{ k = 5, candidates = 10 }, { k = 5, candidates = 20 }]",
            [
                "mine.toml: axes.k[1] is called '5' like axes.k[0]",
                "'candidates': 10",
                "'candidates': 20",
                "setting = [",
            ],
        ),
        ('model = ["gcn", "sgc", "gcn"]', ["mine.toml: axes.model[2] is called 'gcn' like axes.model[0]", "leave one"]),
    ],
)
def test_two_values_that_would_share_a_cell_are_refused(axes: str, words: list[str]) -> None:
    message = error_message(f'columns = "{axes.split()[0]}"\n[axes]\n{axes}')
    assert all(word in message for word in words), message


def test_values_with_names_of_their_own_have_cells_of_their_own() -> None:
    values = '{ setting = "few", k = 5, candidates = 10 }, { setting = "more", k = 5, candidates = 20 }'
    suite = parse_suite(f'columns = "setting"\n[axes]\nsetting = [{values}]', "mine", "mine.toml")
    assert [(cell.column, cell.experiment.candidates) for cell in suite.cells()] == [("few", 10), ("more", 20)]


def test_a_setting_belongs_to_one_axis_of_several_values() -> None:
    """Else a run would differ from what its row or its column names."""
    axes = 'rows = "setting"\ncolumns = "model"\n[axes]\nmodel = ["gcn", "gat"]\n'
    message = error_message(axes + 'setting = [{ setting = "a", model = "gin" }, { setting = "b" }]')
    assert message == "mine.toml: axes.setting sets model, which axes.model sets too; leave one out"


@pytest.mark.parametrize("last", [True, False])
def test_a_value_may_depart_from_an_axis_of_one_value_wherever_that_stands(last: bool) -> None:
    lines = ['method = ["bangs"]', 'k = [{ k = 0, method = "raw" }, 5]']
    text = "\n".join(['kind = "sweep"', 'columns = "k"', "[axes]", *(reversed(lines) if last else lines)])
    assert [cell.experiment.method for cell in parse_suite(text, "mine", "mine.toml").cells()] == ["raw", "bangs"]


def test_an_unknown_suite_gets_a_suggestion_and_a_missing_file_its_name() -> None:
    with pytest.raises(UnknownName, match="did you mean 'table-main'"):
        read_suite(suite_path("table-mian"))
    with pytest.raises(InvalidInput, match=r"nowhere\.toml could not be read"):
        read_suite(suite_path("nowhere.toml"))


@pytest.mark.parametrize("name", sorted(suite_files()))
def test_the_suites_that_come_with_bangs_are_sound(name: str, tmp_path: Path) -> None:
    suite = read_suite(suite_path(name))
    hashes = [cell.experiment.config() for cell in suite.cells()]
    assert len(hashes) >= 4
    assert suite.title


def test_there_is_a_suite_for_every_table_and_figure_of_the_paper() -> None:
    paper = {
        *("table-main", "table-ablation", "table-models", "table-early-stopped", "table-time", "table-stages"),
        *("figure-k", "figure-candidates", "figure-noise", "figure-share", "figure-calibration"),
    }
    assert paper <= suite_files().keys()


def test_the_sweep_of_k_is_the_papers() -> None:
    points = [(cell.experiment.k, cell.experiment.candidates) for cell in read_suite(suite_path("figure-k")).cells()]
    assert [k for k, _ in points] == [0, 5, 20, 50, 100, 200, 300, 400, 500]
    assert all((2 * k if k < 100 else k + 100) == K for k, K in points if k)


def test_the_published_numbers_of_the_main_table_are_the_papers() -> None:
    published = read_suite(suite_path("table-main")).published
    assert published["cora", "bangs"] == Published((84.23, 0.62), "*")
    assert published["pubmed", "cagcn"] == Published((81.16, 0.10))
    assert published["flickr", "random"] == Published((50.10, 0.18))
    assert len(published) == 35


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "too large", "not UTF-8"])
def test_only_a_regular_file_of_a_few_kilobytes_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mine.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "too large":
        path.touch()
        os.truncate(path, 1 << 40)
    else:
        path.write_bytes(b"title = '\xff'")
    with pytest.raises(InvalidInput, match=r"must be a regular file|must have at most|could not be read"):
        read_suite(path)


def test_a_link_to_a_suite_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text(GOOD)
    (tmp_path / "mine.toml").symlink_to("real.toml")
    assert read_suite(tmp_path / "mine.toml").title == "Two methods"


@pytest.mark.parametrize(
    "text", [".".join(["a"] * 40_000) + " = 1", f"[{'.'.join(['a'] * 40_000)}]", '"a" . ' * 40_000 + "a = 1"]
)
def test_a_key_of_very_many_parts_is_refused_before_it_is_parsed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 KB of dots tomllib makes 6.5 GB."""
    monkeypatch.setattr(tomllib, "loads", None)
    assert "has more than 16 parts" in error_message(text)


@pytest.mark.parametrize("text", ["a" * 200_000, "a " * 100_000, '"' * 200_000, "'a" * 100_000, "1.5, " * 50_000])
def test_a_long_text_without_such_a_key_takes_no_longer_than_its_length(text: str) -> None:
    assert "is not valid TOML" in error_message(f"[{text}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title = 3", "mine.toml: title must be text, got 3"),
        ("names = 3", "mine.toml: names must be a table, got 3"),
        ("[names]\nraw = 3", "mine.toml: names.raw must be text, got 3"),
        ("experiment = [1]", "mine.toml: experiment must be a table, got [1]"),
        ("published = 3", "mine.toml: published must be a table, got 3"),
        ("rows = 3", "mine.toml: rows must be an axis or a list of axes, got 3"),
        ("columns = [3]", "mine.toml: columns must be an axis or a list of axes, got [3]"),
        ("protocols = []", "mine.toml: protocols must be a list of values, and not empty, got []"),
        ('protocols = ["lost"]', "mine.toml: protocols: protocol 'lost' is unknown; did you mean 'last'?"),
        ('kind = "tabel"', "mine.toml: kind: kind 'tabel' is unknown; did you mean 'table'?"),
    ],
)
def test_a_key_of_the_wrong_type_is_named_with_its_value(text: str, expected: str) -> None:
    message = error_message(f'{text}\n[axes]\nmethod = ["raw"]')
    assert message.startswith(expected)


def test_a_suite_without_axes_gets_an_error_that_explains_them() -> None:
    assert error_message('title = "x"') == error_message("axes = {}")
    assert "must name what the runs differ in" in error_message("axes = 3")
