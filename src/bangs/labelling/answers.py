"""Answers: the labels that a user gave, in the append-only file labels.csv."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import torch
from torch_geometric.data import Data

from bangs.core.types import Split
from bangs.errors import InvalidInput
from bangs.graphs.tables import UserGraph
from bangs.graphs.tables.labels import placeholders
from bangs.graphs.tables.numbers import MISSING
from bangs.utils.csv_safe import FORMULA, to_csv
from bangs.utils.files import AppendOnlyFile, explain_write_errors, read_regular_file

FILE = "labels.csv"
HEADER = ("number", "time", "id", "action", "label")
MAX_BYTES = 1 << 28
MAX_CLASS_LENGTH = 200

Action = Literal["label", "skip", "undo"]


@dataclass(frozen=True)
class Answer:
    """One row of the file: a label for a node, a skipped node, or an undo of the answer before it."""

    number: int
    node: str
    action: Action
    label: str = ""


class AnswerFile:
    """labels.csv, open for more answers; an incomplete last row, left by a crash, is removed."""

    def __init__(self, path: Path):
        self.answers, end = _parse_answers(read_file(path) or b"", path)
        with explain_write_errors(path):
            self._file = AppendOnlyFile(path, end)
        if not end:
            self._file.append(to_csv(HEADER, []).encode())

    def append(self, node: str, action: Action, label: str = "") -> Answer:
        """Append an answer; when this returns, it is on the disk."""
        answer = Answer(len(self.answers) + 1, node, action, label)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        row = to_csv(["", *HEADER[1:]], [[answer.number, now, node, action, label]]).split("\n", 1)[1]
        self._file.append(row.encode())
        self.answers.append(answer)
        return answer

    def close(self) -> None:
        self._file.close()


def read_answers(path: Path) -> list[Answer]:
    """The complete rows of a labels.csv, oldest first."""
    body = read_file(path)
    if not body:
        raise InvalidInput(f"'{path}' does not exist or is empty; give the labels.csv that `bangs label` wrote")
    return _parse_answers(body, path)[0]


def valid_answers(answers: Sequence[Answer]) -> list[Answer]:
    """The answers without those that were undone, oldest first; an undo removes the newest answer before it."""
    valid: list[Answer] = []
    for answer in answers:
        if answer.action != "undo":
            valid.append(answer)
        elif valid:
            valid.pop()
    return valid


def labels_of(answers: Sequence[Answer]) -> dict[str, str]:
    """The newest label of every labelled node."""
    return {answer.node: answer.label for answer in valid_answers(answers) if answer.action == "label"}


def check_class(name: str, known: Sequence[str] = ()) -> str:
    """The name of a class, trimmed; raises if it is not valid.

    A new class must not look like "no label", and must differ from every `known` class in more than case.
    """
    name = " ".join(name.split())
    if not name or len(name) > MAX_CLASS_LENGTH or not name.isprintable() or name.startswith("'"):
        raise InvalidInput(
            f"the name of a class must have 1 to {MAX_CLASS_LENGTH} printable characters and must not begin with ', "
            f"got {name[:40]!r}"
        )
    if name in known:
        return name
    if placeholders([name]) or name.lower() in (*MISSING, "-1"):
        raise InvalidInput(f'{name!r} looks like a word for "no label"; press S to skip the node, or name the class')
    similar = next((other for other in known if other.casefold() == name.casefold()), None)
    if similar is not None:
        raise InvalidInput(f"there is a class {similar!r} already, which differs only in case; choose that one")
    return name


def read_file(path: Path) -> bytes | None:
    """The bytes of a file of the labelling folder; None if it does not exist."""
    try:
        return read_regular_file(path, MAX_BYTES)
    except FileNotFoundError:
        return None


def with_answers(graph: UserGraph, answers: Sequence[Answer]) -> UserGraph:
    """The graph with the labels of the answers, which may add new classes."""
    labels = labels_of(answers)
    if not labels:
        return graph
    if not isinstance(graph.data, Data):
        raise InvalidInput("labels cannot be added to a store; add them to its tables, and convert it again")
    row = {str(name): node for node, name in enumerate(graph.ids)}
    unknown = [node for node in labels if node not in row]
    if unknown:
        raise InvalidInput(f"the answers name the node {unknown[0]!r}, which the graph has not; is it another graph?")
    classes = list(dict.fromkeys([*graph.classes, *labels.values()]))
    class_index = {name: index for index, name in enumerate(classes)}
    nodes = torch.tensor([row[node] for node in labels])
    data = graph.data.clone()
    data.y = data.y.clone()
    data.y[nodes] = torch.tensor([class_index[label] for label in labels.values()])
    split = graph.split
    if split is not None:
        train, val, test = (part.clone() for part in (split.train, split.val, split.test))
        train[:, nodes], val[:, nodes], test[:, nodes] = True, False, False
        split = Split(train, val, test)
    notes = [*graph.notes, f"{len(labels):,} labels were added from {FILE}"]
    columns = replace(graph.columns, classes=tuple(classes))
    return replace(graph, data=data, classes=classes, columns=columns, split=split, notes=notes)


def _parse_answers(body: bytes, path: Path) -> tuple[list[Answer], int]:
    """The complete answers, and the offset after the last one."""
    answers: list[Answer] = []
    end = 0
    foreign_file = InvalidInput(f"'{path}' was not written by `bangs label`; move it away, or choose another folder")
    for number, (offset, cells) in enumerate(_records(body)):
        if number == 0:
            if tuple(cells) != HEADER:
                raise foreign_file
        elif len(cells) != len(HEADER) or cells[3] not in ("label", "skip", "undo") or not cells[0].isdecimal():
            raise InvalidInput(f"'{path}', answer {number}, is not as `bangs label` writes it; put the original back")
        else:
            node, label = _unescape(cells[2]), _unescape(cells[4])
            answers.append(Answer(number, node, cells[3], label))  # type: ignore[arg-type]
        end = offset
    if not end and not to_csv(HEADER, []).encode().startswith(body):  # a crash may leave a part of the header
        raise foreign_file
    return answers, end


def _records(body: bytes) -> Iterator[tuple[int, list[str]]]:
    """Every complete CSV record and the offset after it; a quoted name may contain line breaks."""
    record, end = b"", 0
    for line in body.splitlines(keepends=True):
        end += len(line)
        record += line
        if record.endswith(b"\n") and record.count(b'"') % 2 == 0:
            try:
                rows = list(csv.reader(io.StringIO(record.decode(), newline="")))
            except (UnicodeDecodeError, csv.Error):
                rows = [[]]
            yield end, rows[0] if rows else []
            record = b""


def _unescape(text: str) -> str:
    """Undo `cell` of `csv_safe`."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA) else text
