"""labels.csv: append-only, whole after a crash, and read back as it was meant."""

from pathlib import Path

import pytest

from bangs.errors import InvalidInput
from bangs.graphs import tables
from bangs.labelling.answers import AnswerFile, check_class, labels_of, read_answers, valid_answers, with_answers
from tests.labelling.folders import small_graph

ODD = ["plain", "a,b", 'say "hi"', "two\nlines", "=1+1", "-x", "\u0645\u0631", "'quoted'"]


def test_answers_come_back_as_they_were_given_whatever_the_names(tmp_path: Path) -> None:
    file = AnswerFile(tmp_path / "labels.csv")
    for name in ODD:
        file.append(name, "label", "=yew" if name == "plain" else "oak")
    file.close()
    answers = read_answers(tmp_path / "labels.csv")
    assert [answer.node for answer in answers] == ODD
    assert answers[0].label == "=yew"
    assert "'=1+1" in (tmp_path / "labels.csv").read_text(), "a spreadsheet does not take it for a formula"


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_row_torn_by_a_crash_goes_and_all_others_stay(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "labels.csv"
    file = AnswerFile(path)
    file.append("one", "label", "oak")
    original = path.read_bytes()
    file.append("two\nlines", "label", 'the "new" class')
    file.close()
    path.write_bytes(path.read_bytes()[: len(original) + cut])
    reopened = AnswerFile(path)
    assert [answer.node for answer in reopened.answers] == ["one"]
    assert path.read_bytes() == original
    reopened.append("three", "skip")
    reopened.close()
    assert [answer.node for answer in read_answers(path)] == ["one", "three"]


def test_an_undo_takes_back_the_newest_answer_that_is_left(tmp_path: Path) -> None:
    file = AnswerFile(tmp_path / "labels.csv")
    file.append("one", "label", "oak")
    file.append("two", "skip")
    file.append("three", "label", "ash")
    file.append("three", "undo")
    file.append("two", "undo")
    assert [answer.node for answer in valid_answers(file.answers)] == ["one"]
    file.append("one", "label", "yew")
    assert labels_of(file.answers) == {"one": "yew"}
    file.close()


@pytest.mark.parametrize(
    "content", ["my,own,table\n1,2,3\n", "one line, no end", 'a "quote\nthat never ends\n', "\0\0"]
)
def test_a_file_of_someone_else_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(content)
    with pytest.raises(InvalidInput, match="was not written by `bangs label`"):
        AnswerFile(path)
    assert path.read_text() == content


def test_a_header_torn_by_a_crash_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("number,ti")
    AnswerFile(tmp_path / "labels.csv").close()
    assert read_answers(tmp_path / "labels.csv") == []


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\x00b", "bell\x07", "'tick"])
def test_a_class_needs_a_name_that_can_be_read(name: str) -> None:
    with pytest.raises(InvalidInput, match="the name of a class must have"):
        check_class(name)


def test_answers_become_labels_and_new_classes_of_the_graph(tmp_path: Path) -> None:
    unlabelled = tables.read(small_graph(tmp_path / "graph"))
    file = AnswerFile(tmp_path / "labels.csv")
    file.append("n20", "label", "oak")
    file.append("n21", "label", "elm")
    file.append("n22", "skip")
    file.close()
    new = with_answers(unlabelled, read_answers(tmp_path / "labels.csv"))
    assert new.classes == [*unlabelled.classes, "elm"]
    assert new.classes[int(new.data.y[20])] == "oak"
    assert new.classes[int(new.data.y[21])] == "elm"
    assert int(new.data.y[22]) == -1
    assert int(unlabelled.data.y[20]) == -1, "the graph that was read is as it was"


def test_answers_about_another_graph_are_refused(tmp_path: Path) -> None:
    unlabelled = tables.read(small_graph(tmp_path / "graph"))
    file = AnswerFile(tmp_path / "labels.csv")
    file.append("stranger", "label", "oak")
    file.close()
    with pytest.raises(InvalidInput, match="'stranger', which the graph has not"):
        with_answers(unlabelled, read_answers(tmp_path / "labels.csv"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("unknown", "press S to skip"), ("n/a", "press S to skip"), ("-1", "press S to skip"), ("OAK", "a class 'oak'")],
)
def test_a_new_class_is_neither_a_word_for_no_label_nor_another_spelling_of_one(name: str, expected: str) -> None:
    with pytest.raises(InvalidInput, match=expected):
        check_class(name, ["oak", "elm"])
    assert check_class(name, ["oak", name]) == name
