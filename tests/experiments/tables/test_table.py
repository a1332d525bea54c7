"""Tables: numbers known on paper, marks where they belong, and every rule named."""

import csv
import io
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bangs.cli import app
from bangs.errors import InvalidInput
from bangs.experiments.experiment import Experiment
from bangs.experiments.results import Result, gather, json_lines, matching, results_in, rows_in_file, rows_of
from bangs.experiments.suites.find_suite import suite_path
from bangs.experiments.suites.read_suite import parse_suite, read_suite
from bangs.experiments.suites.suite import Suite
from bangs.experiments.tables.render import as_csv, as_json, latex, markdown
from bangs.experiments.tables.table import Table, tabulate
from bangs.runs import Record
from tests.helpers.small_graphs import fake_rows

SUITE = parse_suite(
    """
title = "Small"
focus = "bangs"
[axes]
dataset = ["cora", "citeseer"]
method = ["raw", "cpl", "bangs"]
[experiment]
seeds = 3
[names]
bangs = "BANGS"
cpl = "C_PL"
[absent]
citeseer = "no data"
[published]
protocol = "best test accuracy"
citeseer = "none"
[published.cora]
raw = [80.0, 0.5]
cpl = [81.0, 0.5]
bangs = [82.0, 0.5]
""",
    "small",
    "small.toml",
)
# by seed and round: 0 is the first model, 1 and 2 rounds
SCORES = {
    "raw": [[0.70], [0.71], [0.72]],
    "cpl": [[0.70, 0.80, 0.75], [0.71, 0.81, 0.76], [0.72, 0.82, 0.77]],
    "bangs": [[0.70, 0.85, 0.90], [0.71, 0.86, 0.91], [0.72, 0.875, 0.92]],
}


def results(suite: Suite = SUITE) -> list[Result]:
    rows = []
    for cell in suite.cells():
        if cell.row == "cora":
            rows += fake_rows(cell.experiment, SCORES[cell.column])
    return gather(rows)


@pytest.fixture
def table() -> Table:
    return tabulate(SUITE, results(), ["validation", "last"])


def test_means_and_deviations_on_paper(table: Table) -> None:
    validation, last, published = table.lines
    assert (validation.rule, last.rule, published.rule) == ("validation", "last", "published")
    raw, cpl, bangs = validation.entries.values()
    assert (raw.mean, raw.std) == pytest.approx((71.0, 1.0))
    assert cpl.mean == pytest.approx(81.0)
    assert bangs.values == pytest.approx((90.0, 91.0, 92.0))
    assert last.entries["cpl"].mean == pytest.approx(76.0)


def test_best_and_second_are_marked_and_the_focus_carries_its_stars(table: Table) -> None:
    text = markdown(table)
    assert r"**91.00 ± 1.00**\*\*" in text
    assert "<u>81.00 ± 1.00</u>" in text
    assert "**82.00 ± 0.50** |" in text  # published, without a test of ours
    assert r"\textbf{91.00 $\pm$ 1.00}$^{**}$" in latex(table)


def test_datasets_along_a_line_are_not_ranked() -> None:
    both = [row for cell in SUITE.cells() for row in fake_rows(cell.experiment, SCORES[cell.column])]
    transposed = tabulate(replace(SUITE, rows=("method",), columns=("dataset",), focus="", published={}), gather(both))
    assert [line.row for line in transposed.lines[::2]] == ["raw", "cpl", "bangs"]
    assert all(entry.rank == 0 for line in transposed.lines for entry in line.entries.values())
    assert "bold" not in transposed.caption


def test_datasets_among_columns_do_not_compete_either() -> None:
    both = [row for cell in SUITE.cells() for row in fake_rows(cell.experiment, SCORES[cell.column])]
    suite = replace(SUITE, rows=(), columns=("dataset", "method"), focus="", published={})
    table = tabulate(suite, gather(both))
    assert table.columns[:2] == ("cora/raw", "cora/cpl")
    assert all(entry.rank == 0 for line in table.lines for entry in line.entries.values())


def test_means_that_are_equal_but_for_rounding_share_their_rank() -> None:
    """The mean of 82.0 and 82.3, and that of 82.1 and 82.2, differ in the last bit."""
    scores = {"raw": [[0.5], [0.6]], "cpl": [[0.5, 0.820], [0.5, 0.823]], "bangs": [[0.5, 0.821], [0.5, 0.822]]}
    rows = [row for cell in SUITE.cells() for row in fake_rows(cell.experiment, scores[cell.column])]
    line = tabulate(SUITE, gather(rows), ["last"]).lines[0]
    means = [entry.mean for entry in line.entries.values()]
    assert means[1] != means[2]
    assert [entry.rank for entry in line.entries.values()] == [0, 1, 1]


def test_the_caption_names_the_rule_behind_every_line(table: Table) -> None:
    assert "'validation' is the test accuracy at the round with the best validation accuracy." in table.caption
    assert "'last' is the test accuracy of the last round." in table.caption
    assert "'published' is the best test accuracy." in table.caption
    assert "over 3 seeds" in table.caption
    assert "Marks on BANGS: one-sided t-test against the second best" in table.caption


def test_the_focus_is_tested_against_every_other_with_holms_correction(table: Table) -> None:
    tests = table.comparisons["last"]
    assert [(test.first, test.second) for test in tests] == [("bangs", "raw"), ("bangs", "cpl")]
    assert [test.difference for test in tests] == pytest.approx([20.0, 15.0])
    assert all(test.verdict == "better" for test in tests)


def test_what_is_missing_is_told_with_its_reason(table: Table) -> None:
    assert "Missing: citeseer: no data." in markdown(table)
    empty = tabulate(SUITE, [])
    assert empty.lines[0].rule == "published"
    assert "cora: not run" in markdown(empty)


def test_no_sign_of_a_title_is_latex(table: Table) -> None:
    text = latex(replace(table, suite=replace(table.suite, title=r"a\b {c} 5$ ~ ^2 > |x| …")))
    assert r"a\textbackslash{}b \{c\} 5\$ \textasciitilde{} \textasciicircum{}2 $>$ $|$x$|$ \ldots{}:" in text


def test_latex_is_booktabs_and_escapes(table: Table) -> None:
    text = latex(table)
    assert all(word in text for word in (r"\toprule", r"\midrule", r"\bottomrule", r"C\_PL", r"in \%"))


def test_latex_has_the_paired_tests_too(table: Table) -> None:
    numbers, *tests = latex(table).split(r"\end{table}")[:-1]
    assert len(tests) == len(table.comparisons) == 2
    assert (
        r"\caption{Small: Paired t-tests over common seeds, 'last', Holm's correction over the 2 of them.}" in tests[1]
    )
    assert r" & BANGS less \ldots{} & difference & 95 \% interval & p & p (Holm) & verdict \\" in tests[1]
    assert r"cora & C\_PL & +15.00 & +15.00 \ldots{} +15.00 & $<$ 0.001 & $<$ 0.001 & better \\" in tests[1]
    for text, columns in ((numbers, 5), *((test, 7) for test in tests)):
        lines = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert {line.count(" & ") for line in lines} == {columns - 1}
        assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")


def test_a_bar_in_a_name_does_not_part_a_cell(table: Table) -> None:
    text = markdown(replace(table, suite=replace(table.suite, names={"bangs": "p(y|x)", "cora": "co|ra"})))
    assert {line.replace(r"\|", "").count("|") for line in text.splitlines() if line.startswith("|")} == {6, 8}


def test_csv_and_json_hold_the_same_numbers(table: Table) -> None:
    lines = list(csv.DictReader(io.StringIO(as_csv(table))))
    facts = json.loads(as_json(table))
    assert len(lines) == 9
    ours = next(line for line in lines if (line["column"], line["rule"]) == ("bangs", "last"))
    theirs = facts["lines"][1]["entries"]["bangs"]
    assert float(ours["mean"]) == pytest.approx(theirs["mean"])
    assert ours["run"] == theirs["run"] != ""
    assert theirs["seeds"] == [0, 1, 2]


def test_protocols_choose_the_round() -> None:
    (result,) = gather(fake_rows(next(SUITE.cells()).experiment, [[0.9, 0.5, 0.7, 0.6]]))
    assert result.scores("validation")[0] == pytest.approx(90.0)
    assert result.scores("best_test")[0] == pytest.approx(70.0)  # round 0 is the raw model
    assert result.scores("last")[0] == pytest.approx(60.0)


def test_among_equal_validation_scores_the_earliest_round_counts() -> None:
    row = {**fake_rows(next(SUITE.cells()).experiment, [[0.5, 0.6, 0.7]])[0], "validation": [0.4, 0.8, 0.8]}
    (result,) = gather([row])
    assert result.scores("validation")[0] == pytest.approx(60.0)


def test_rows_survive_a_file_and_a_second_export(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [row for seeds in ([5, 6], [7, 8]) for row in rows_of(finished(seeds))]
    failed = rows_of(replace(finished([3]), events=[{"kind": "failed", "error": "no luck"}], result=None))
    path.write_text(json_lines([*rows, *failed, *rows]))
    assert list(rows_in_file(path)) == [*rows, *failed, *rows]
    assert json_lines(rows_in_file(path)) == path.read_text()
    assert [tuple(result.rows) for result in results_in(path)] == [(5, 6), (7, 8), ()]


def test_a_file_of_rows_has_the_settings_of_each_run_once() -> None:
    rows = [row for seeds in ([5, 6], [7, 8]) for row in rows_of(finished(seeds))]
    text = json_lines(rows)
    assert text.count("\n") == text.count('"config"') == text.count('"environment"') == 2
    assert text.count('"validation"') == 4


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda line: line[:-20], "line 2 is not valid JSON"),
        (lambda line: line.split('"rows"')[0].rstrip(",") + "}", "line 2 holds no rows of a run"),
        (lambda line: line.split('"rows"')[0] + '"rows":[]}', "line 2 holds no rows of a run"),
        (lambda line: line.split('"rows"')[0] + '"rows":{"seed":5}}', "line 2 holds no rows of a run"),
        (lambda line: line.replace('"rows":[', '"rows":[3,'), "line 2 holds no rows of a run"),
        (lambda line: line.replace('"seconds"', '"hours"'), "line 2 holds no rows of a run"),
        (lambda line: "[]", "line 2 holds no rows of a run"),
    ],
    ids=["cut off", "without rows", "no row", "rows of another kind", "a row of another kind", "no seconds", "no run"],
)
def test_a_damaged_file_of_rows_is_refused_with_its_line(
    tmp_path: Path, damage: Callable[[str], str], sentence: str
) -> None:
    path = tmp_path / "rows.jsonl"
    sound = json_lines(rows_of(finished())).strip()
    path.write_text(f"{sound}\n{damage(sound)}\n")
    with pytest.raises(InvalidInput, match=sentence):
        results_in(path)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_run_that_failed_once_keeps_its_scores(position: int) -> None:
    rows = fake_rows(next(SUITE.cells()).experiment, [[0.5], [0.6]])
    failed = {**{key: rows[0][key] for key in ("run", "config", "environment")}, "seeds": [0, 1], "error": "no luck"}
    (result,) = gather([*rows[:position], failed, *rows[position:]])
    assert (tuple(result.rows), result.error) == ((0, 1), "")
    assert result.scores("last") == pytest.approx({0: 50.0, 1: 60.0})


def test_of_several_errors_of_a_run_the_last_is_told() -> None:
    failed = {"run": "one", "config": {}, "environment": {}, "seeds": [0]}
    (result,) = gather([{**failed, "error": "no luck"}, {**failed, "error": "no luck again"}])
    assert (result.rows, result.error) == ({}, "no luck again")


def test_a_run_is_found_by_its_settings_and_the_one_with_most_seeds_counts() -> None:
    experiment = next(SUITE.cells()).experiment
    few = fake_rows(experiment, [[0.5]])
    many = [{**row, "run": "other"} for row in fake_rows(experiment, [[0.5], [0.6]])]
    match = matching(gather([*many, *few]), experiment.settings())
    assert match is not None
    assert match.run == "other"
    assert matching(gather(few), list(SUITE.cells())[1].settings) is None


def test_of_runs_with_equally_many_seeds_the_last_counts() -> None:
    experiment = next(SUITE.cells()).experiment
    rows = [{**row, "run": run} for run in ("first", "last") for row in fake_rows(experiment, [[0.5], [0.6]])]
    match = matching(gather(rows), experiment.settings())
    assert match is not None
    assert match.run == "last"


def test_a_setting_that_came_later_has_its_default_in_older_rows() -> None:
    experiment = next(SUITE.cells()).experiment
    (row,) = fake_rows(experiment, [[0.5]])
    del row["config"]["normalise"]
    assert matching(gather([row]), experiment.settings()) is not None


def test_a_table_needs_rows_and_no_part_behind_a_name() -> None:
    text = """
title = "Mine"
[experiment]
model = "my-model"
seeds = 2
[axes]
dataset = ["a-store-elsewhere"]
method = ["raw", "mine"]
"""
    with pytest.raises(InvalidInput, match="model 'my-model' is unknown"):
        parse_suite(text, "mine", "mine.toml")
    suite = parse_suite(text, "mine", "mine.toml", names="any")
    rows = fake_rows(Experiment(method="bangs"), [[0.5, 0.6], [0.7, 0.8]])
    settings = {"dataset": "a-store-elsewhere", "model": "my-model", "method": "mine"}
    table = tabulate(suite, gather({**row, "config": {**row["config"], **settings}} for row in rows), ["last"])
    (ours,) = table.lines[0].entries.values()
    assert ours.mean == pytest.approx(70.0)


def test_seconds_are_those_of_one_run_and_one_round() -> None:
    time, stages = read_suite(suite_path("table-time")), read_suite(suite_path("table-stages"))
    cell, block = next(time.cells()), next(stages.cells())
    rows = fake_rows(cell.experiment, [[0.5, 0.6, 0.7]] * 10) + fake_rows(block.experiment, [[0.5, 0.6, 0.7]] * 10)
    first = next(iter(tabulate(time, gather(rows)).lines[0].entries.values()))
    assert (first.mean, first.note) == (pytest.approx(2.0), "")
    line = tabulate(stages, gather(rows)).lines[0]
    assert [entry.mean for entry in line.entries.values()] == pytest.approx([0.1, 0.2, 0.4])
    line = tabulate(stages, gather(fake_rows(block.experiment, [[0.5, 0.6]] * 10))).lines[0]
    assert [entry.mean for entry in line.entries.values()] == pytest.approx([0.2, 0.4, 0.8])


@pytest.mark.parametrize(("seeds", "words"), [(1, "20.00 (one seed)"), (4, "5.00 (4 seeds at once)")])
def test_seconds_of_other_seeds_at_once_are_another_measurement_and_say_so(seeds: int, words: str) -> None:
    time = read_suite(suite_path("table-time"))
    experiment = next(time.cells()).experiment
    other = [{**row, "run": "other"} for row in fake_rows(experiment, [[0.5, 0.6]] * seeds)]
    table = tabulate(time, gather(other))
    assert words in markdown(table)
    assert words in latex(table)
    with_suite_seeds = tabulate(time, gather([*other, *fake_rows(experiment, [[0.5, 0.6]] * 10)]))
    assert words not in markdown(with_suite_seeds)


def test_runs_are_paired_by_the_seeds_they_share() -> None:
    """BANGS has 90, 91, 92 for seeds 0, 1, 2, and CPL 75, 76 for seeds 1 and 2."""
    rows = []
    for cell in SUITE.cells({"dataset": ["cora"], "method": ["cpl", "bangs"]}):
        rows += fake_rows(cell.experiment, SCORES[cell.column][: 2 if cell.column == "cpl" else 3])
    rows = [{**row, "seed": row["seed"] + (row["config"]["method"] == "cpl")} for row in rows]
    table = tabulate(SUITE, gather(rows), ["last"])
    (test,) = table.comparisons["last"]
    assert test.difference == pytest.approx(16.0)
    assert "over 2 to 3 seeds" in table.caption


def finished(seeds: Sequence[int] = (5, 6), **changes: object) -> Record:
    """A run of two seeds and one round after the first model, on somebody's file."""
    first = {"validation": [0.5, 0.25], "test": [0.123456, 0.2], "pseudo_accuracy": [None, None]}
    first |= {"labelled": [4, 4], "epochs": [10, 20], "seconds": {"train": 1.0}}
    second = {"validation": [0.75, 0.5], "test": [0.3, 0.4], "pseudo_accuracy": [0.9, 1.0]}
    second |= {"labelled": [9, 8], "epochs": [11, 21], "seconds": {"calibrate": 0.25, "select": 0.5, "train": 2.0}}
    result = {"rounds": [first, second | changes], "seconds": {"total": 4.0}}
    return Record({"dataset": "/home/somebody/mine.npz", "seeds": list(seeds)}, {}, [], result)


def test_rows_tell_seed_by_seed_what_a_run_scored_and_its_stages_after_the_first_model() -> None:
    one, other = rows_of(finished())
    assert (one["seed"], other["seed"], one["batch"]) == (5, 6, 2)
    assert (one["test"], other["test"]) == ([0.12346, 0.3], [0.2, 0.4])
    assert (one["validation"], other["validation"]) == ([0.5, 0.75], [0.25, 0.5])
    assert (one["epochs"], other["labelled"], other["pseudo_accuracy"]) == ([10, 11], [4, 8], [None, 1.0])
    assert one["seconds"] == {"first": 1.0, "calibrate": 0.25, "select": 0.5, "train": 2.0, "total": 4.0}
    assert one["config"] == {"dataset": "mine"}


@pytest.mark.parametrize("changes", [{"test": 3}, {"test": [0.3]}, {"seconds": None}])
def test_a_result_that_is_none_of_ours_is_a_sentence(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=r"the folder('s result is|.*run)"):
        rows_of(finished(**changes))


@pytest.mark.parametrize("changes", [{"epochs": [10]}, {"test": [True, 0.3]}, {"seed": True}, {"run": 3}])
def test_a_row_that_is_none_of_ours_is_refused_with_its_line(tmp_path: Path, changes: dict[str, object]) -> None:
    """Such as curves of different lengths, or a truth where a number belongs."""
    row = rows_of(finished())[0]
    path = tmp_path / "rows.jsonl"
    path.write_text(json_lines([row]) + json_lines([{**row, **changes}]))
    with pytest.raises(InvalidInput, match="line 2 holds no rows of a run"):
        results_in(path)


def test_a_recipe_that_brings_its_own_budget_is_found_whatever_the_row_says_of_one() -> None:
    settings = {"recipe": "paper", "method": "raw", "dataset": "cora"}
    rows = [{**row, "config": {**settings, "k": 7}} for row in fake_rows(Experiment(), [[0.5]])]
    assert matching(gather(rows), settings) is not None
    assert matching(gather(rows), {**settings, "recipe": "budget"}) is None
    budget_rows = [{**row, "config": {"method": "raw", "k": 7}} for row in fake_rows(Experiment(), [[0.5]])]
    assert matching(gather(budget_rows), {"method": "raw", "k": 7}) is not None
    assert matching(gather(budget_rows), {"method": "raw", "k": 8}) is None


def test_what_went_wrong_is_told_without_the_folder_it_went_wrong_in() -> None:
    failed = [{"kind": "failed", "error": "cannot read /home/somebody/mine.npz"}]
    (row,) = rows_of(replace(finished(), events=failed, result=None))
    assert row["error"] == "cannot read mine.npz"


def test_a_run_under_way_has_no_rows_and_a_failed_one_its_reason() -> None:
    config = {"method": "raw", "seeds": [0]}
    assert rows_of(Record(config, {}, [{"kind": "started"}], None)) == []
    (row,) = rows_of(Record(config, {}, [{"kind": "failed", "error": "no luck"}], None))
    assert row["error"] == "no luck"
    assert rows_of(Record(config, {}, [{"kind": "failed", "error": "no luck"}, {"kind": "resumed"}], None)) == []


@pytest.mark.parametrize("kind", ["pipe", "device", "too large"])
def test_only_regular_files_of_rows_are_read_and_their_size_is_bounded(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 1 << 40)
    with pytest.raises(InvalidInput, match=r"must be a regular file|must have at most"):
        results_in(tmp_path)


HOSTILE = "\x1b]0;owned\x07<script>alert(1)</script><img src=x>![x](http://e.vil/x)\n# x"


@pytest.mark.parametrize("form", ["markdown", "csv", "latex", "json"])
def test_names_and_errors_from_outside_command_neither_terminal_nor_page(tmp_path: Path, form: str) -> None:
    suite = tmp_path / "mine.toml"
    text, word = json.dumps(HOSTILE), json.dumps("\x1b[31m<img src=x>")
    suite.write_text(
        f"title = {text}\nfocus = {word}\ncolumns = ['setting']\n[axes]\ndataset = ['cora']\n"
        f"setting = [{{ setting = {word}, method = 'raw' }}, {{ setting = 'b', method = 'bangs' }}, "
        f"{{ setting = 'c', method = 'cpl' }}]\n[names]\ncora = {text}\nb = {text}\n"
    )
    cells = list(read_suite(suite_path(str(suite))).cells())
    rows = [row for cell in cells[:2] for row in fake_rows(cell.experiment, [[0.5, 0.6], [0.5, 0.7]])]
    curves = {"labelled": [1, 2], "epochs": [1, 1], "pseudo_accuracy": [None, 0.5]}
    failed = {**fake_rows(cells[2].experiment, [[0.5]])[0], "error": HOSTILE}
    (tmp_path / "rows.jsonl").write_text(json_lines([*({**row, **curves} for row in rows), failed]))
    result = CliRunner().invoke(app, ["table", str(tmp_path / "rows.jsonl"), "--suite", str(suite), "--format", form])
    assert result.exit_code == 0, result.exception
    assert not set(result.output) & set("\x1b\x07")
    if form == "markdown":
        assert "&lt;script>" in result.output
        assert "<script" not in result.output
        assert "<img" not in result.output
        assert "](http" not in result.output.replace(r"\](", "")
        assert not any(line.startswith("# ") for line in result.output.splitlines())
