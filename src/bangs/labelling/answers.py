"""Answers: the labels a person gave, in labels.csv, which only grows and survives a crash."""

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
LARGEST = 1 << 28  # bytes
LONGEST = 200  # letters of a class

Action = Literal["label", "skip", "undo"]


@dataclass(frozen=True)
class Answer:
    """One row: a label for a node, a node skipped, or the answer before it taken back."""

    number: int
    node: str
    action: Action
    label: str = ""


class AnswerFile:
    """labels.csv, open for more answers; a row torn by a crash was never acknowledged and is removed."""

    def __init__(self, path: Path):
        self.answers, end = _sound(_body(path), path)
        with explain_write_errors(path):
            self._file = AppendOnlyFile(path, end)
        if not end:
            self._file.append(to_csv(HEADER, []).encode())

    def append(self, node: str, action: Action, label: str = "") -> Answer:
        """One more answer; when this returns, it is on the disk."""
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
    body = _body(path)
    if not body:
        raise InvalidInput(f"'{path}' does not exist or is empty; give the labels.csv that `bangs label` wrote")
    return _sound(body, path)[0]


def standing(answers: Sequence[Answer]) -> list[Answer]:
    """The answers that count, oldest first: an undo takes back the newest that is left."""
    out: list[Answer] = []
    for answer in answers:
        if answer.action != "undo":
            out.append(answer)
        elif out:
            out.pop()
    return out


def labels_of(answers: Sequence[Answer]) -> dict[str, str]:
    """The label that counts of every answered node; of several the newest."""
    return {own.node: own.label for own in standing(answers) if own.action == "label"}


def check_class(name: str, known: Sequence[str] = ()) -> str:
    """The name of a class as a person typed it, trimmed; raises where it cannot be one.

    A class that is not `known` yet must not look like "no label", nor like a known one in other capital letters.
    """
    name = " ".join(name.split())
    if not name or len(name) > LONGEST or not name.isprintable() or name.startswith("'"):
        raise InvalidInput(
            f"a class must have a name of 1 to {LONGEST} letters that can be printed and does not begin with ', "
            f"got {name[:40]!r}"
        )
    if name in known:
        return name
    if placeholders([name]) or name.lower() in (*MISSING, "-1"):
        raise InvalidInput(f'{name!r} looks like a word for "no label"; press S to skip the node, or name the class')
    twin = next((own for own in known if own.casefold() == name.casefold()), None)
    if twin is not None:
        raise InvalidInput(f"there is a class {twin!r} already, which differs in capital letters only; choose that one")
    return name


def with_answers(own: UserGraph, answers: Sequence[Answer]) -> UserGraph:
    """The same graph with the labels of the answers, perhaps of new classes."""
    labels = labels_of(answers)
    if not labels:
        return own
    if not isinstance(own.data, Data):
        raise InvalidInput("labels cannot be added to a store; add them to its tables, and convert it again")
    place = {str(name): node for node, name in enumerate(own.ids)}
    unknown = [node for node in labels if node not in place]
    if unknown:
        raise InvalidInput(f"the answers name the node {unknown[0]!r}, which the graph has not; is it another graph?")
    classes = list(dict.fromkeys([*own.classes, *labels.values()]))
    number = {name: index for index, name in enumerate(classes)}
    nodes = torch.tensor([place[node] for node in labels])
    data = own.data.clone()
    data.y = data.y.clone()
    data.y[nodes] = torch.tensor([number[label] for label in labels.values()])
    split = own.split
    if split is not None:
        train, val, test = (part.clone() for part in (split.train, split.val, split.test))
        train[:, nodes], val[:, nodes], test[:, nodes] = True, False, False
        split = Split(train, val, test)
    notes = [*own.notes, f"{len(labels):,} labels were added from {FILE}"]
    columns = replace(own.columns, classes=tuple(classes))
    return replace(own, data=data, classes=classes, columns=columns, split=split, notes=notes)


def _body(path: Path) -> bytes:
    try:
        return read_regular_file(path, LARGEST)
    except FileNotFoundError:
        return b""


def _sound(body: bytes, path: Path) -> tuple[list[Answer], int]:
    """The complete answers, and the offset behind the last."""
    out: list[Answer] = []
    end = 0
    stranger = InvalidInput(f"'{path}' was not written by `bangs label`; move it away, or choose another folder")
    for number, (offset, cells) in enumerate(_records(body)):
        if number == 0:
            if tuple(cells) != HEADER:
                raise stranger
        elif len(cells) != len(HEADER) or cells[3] not in ("label", "skip", "undo") or not cells[0].isdecimal():
            raise InvalidInput(f"'{path}', answer {number}, is not as `bangs label` writes it; put the original back")
        else:
            node, label = _plain(cells[2]), _plain(cells[4])
            out.append(Answer(number, node, cells[3], label))  # type: ignore[arg-type]
        end = offset
    if not end and not to_csv(HEADER, []).encode().startswith(body):  # a crash may leave a part of the header only
        raise stranger
    return out, end


def _records(body: bytes) -> Iterator[tuple[int, list[str]]]:
    """Every whole record of a CSV and the offset behind it; a name may hold line ends, in quotes."""
    held, end = b"", 0
    for line in body.splitlines(keepends=True):
        end += len(line)
        held += line
        if held.endswith(b"\n") and held.count(b'"') % 2 == 0:
            try:
                rows = list(csv.reader(io.StringIO(held.decode(), newline="")))
            except (UnicodeDecodeError, csv.Error):
                rows = [[]]
            yield end, rows[0] if rows else []
            held = b""


def _plain(text: str) -> str:
    """The text before `cell` of `csv_safe` made it safe."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA) else text
