"""Session: the state of labelling: the queue, the answers and the next node."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bangs.errors import BangsError
from bangs.labelling.answers import FILE, Action, AnswerFile, check_class, read_answers, valid_answers
from bangs.labelling.cards import read_progress, read_queue


class Stale(BangsError):
    """A page sent an answer to a node that is no longer the current one."""


class Refused(BangsError):
    """A page asked for an action that is not possible."""


class Session:
    """The labelling session of one folder; every answer is on the disk before the next node is shown."""

    def __init__(self, folder: Path, *, batch: int, read_only: bool = False):
        self.folder, self.batch, self.read_only = folder, batch, read_only
        self.refit: Callable[[], None] | None = None
        self.fitting = False
        self.fault = ""
        self._lock = threading.RLock()
        path = folder / FILE
        self._file = None if read_only else AnswerFile(path)
        answers = read_answers(path) if read_only and path.exists() else []
        self._answers = answers if self._file is None else self._file.answers  # a list that grows
        self._queue: dict[str, Any] = {"classes": [], "cards": [], "notes": [], "strategy": ""}
        self._progress: list[dict[str, Any]] = []
        self._answered: dict[str, dict[str, Any]] = {}  # cards of answered nodes, for an undo after a new queue
        self.load()

    def load(self) -> None:
        """Load the queue that a fit has written."""
        with self._lock:
            self._queue = read_queue(self.folder) or self._queue
            self._progress = read_progress(self.folder)

    @property
    def waiting(self) -> int:
        """The number of answers since the last fit."""
        fitted = int(self._progress[-1]["answers"]) if self._progress else 0
        return len(valid_answers(self._answers)) - fitted

    def state(self) -> dict[str, Any]:
        """Everything that the page shows, as a JSON-able dict."""
        with self._lock:
            answers = valid_answers(self._answers)
            cards = self._cards()
            labels = [answer for answer in answers if answer.action == "label"]
            classes = list(dict.fromkeys([*self._queue["classes"], *(answer.label for answer in labels)]))
            return {
                "number": len(self._answers),
                "card": cards[0] if cards else None,
                "queue": [card["node"] for card in cards],
                "classes": classes,
                "counts": {name: sum(answer.label == name for answer in labels) for name in classes},
                "labelled": len(labels),
                "skipped": len(answers) - len(labels),
                "last": None if not answers else [answers[-1].node, answers[-1].action, answers[-1].label],
                "waiting": max(0, self.waiting),
                "batch": self.batch,
                "progress": self._progress,
                "strategy": self._queue["strategy"],
                "notes": self._queue["notes"],
                "fitting": self.fitting,
                "fault": self.fault,
                "read_only": self.read_only,
            }

    def act(self, action: Action, node: str | None, number: int, label: str = "") -> dict[str, Any]:
        """Handle an answer from a page that showed `number` answers; returns the new state."""
        with self._lock:
            if self._file is None:
                raise Refused("this page is for reading only; start `bangs label` without --read-only to answer")
            answers = valid_answers(self._answers)
            if number != len(self._answers):
                raise Stale("another page has gone on meanwhile; this is the present node")
            if action == "undo":
                if not answers:
                    raise Refused("there is nothing to take back")
                self._file.append(answers[-1].node, "undo")
            else:
                card = next(iter(self._cards()), None)
                if card is None or node != card["node"]:
                    raise Stale("this node is answered already; this is the present one")
                known = self.state()["classes"]
                self._file.append(card["node"], action, check_class(label, known) if action == "label" else "")
                self._answered[card["node"]] = card
            state = self.state()
        if self.refit is not None and self.waiting >= self.batch:
            self.refit()
        return state

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()

    def _cards(self) -> list[dict[str, Any]]:
        """The cards without an answer, in order; the node of an undo that was just made comes first."""
        answered = {answer.node for answer in valid_answers(self._answers)}
        cards = [card for card in self._queue["cards"] if card["node"] not in answered]
        if self._answers and self._answers[-1].action == "undo":
            last = self._answers[-1].node
            undone = next((card for card in cards if card["node"] == last), self._answered.get(last))
            cards = [*([undone] if undone else []), *(card for card in cards if card["node"] != last)]
        return cards
