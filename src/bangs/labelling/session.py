"""Session: the queue, the answers and the next node, whatever page asks."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bangs.errors import BangsError
from bangs.labelling.answers import FILE, Action, AnswerFile, check_class, read_answers, standing
from bangs.labelling.cards import read_progress, read_queue


class Stale(BangsError):
    """A page answered what it does not show any more."""


class Refused(BangsError):
    """What a page asked for is not to be done."""


class Session:
    """One person's labelling in one folder; every answer is on the disk before the next node is shown."""

    def __init__(self, folder: Path, *, batch: int, read_only: bool = False):
        self.folder, self.batch, self.read_only = folder, batch, read_only
        self.refit: Callable[[], None] | None = None
        self.fitting = False
        self.fault = ""
        self._lock = threading.RLock()
        path = folder / FILE
        self._file = None if read_only else AnswerFile(path)
        read = read_answers(path) if read_only and path.exists() else []
        self._answers = read if self._file is None else self._file.answers  # which grow
        self._queue: dict[str, Any] = {"classes": [], "cards": [], "notes": [], "strategy": ""}
        self._progress: list[dict[str, Any]] = []
        self._seen: dict[str, dict[str, Any]] = {}  # cards of answered nodes, for an undo after the queue has changed
        self.load()

    def load(self) -> None:
        """Take up the queue that a fit has left."""
        with self._lock:
            self._queue = read_queue(self.folder) or self._queue
            self._progress = read_progress(self.folder)

    @property
    def waiting(self) -> int:
        """Answers that no fit has seen."""
        seen = int(self._progress[-1]["answers"]) if self._progress else 0
        return len(standing(self._answers)) - seen

    def state(self) -> dict[str, Any]:
        """All that a page shows, as JSON holds it."""
        with self._lock:
            counted = standing(self._answers)
            cards = self._cards()
            labels = [own for own in counted if own.action == "label"]
            classes = list(dict.fromkeys([*self._queue["classes"], *(own.label for own in labels)]))
            return {
                "number": len(self._answers),
                "card": cards[0] if cards else None,
                "queue": [card["node"] for card in cards],
                "classes": classes,
                "counts": {name: sum(own.label == name for own in labels) for name in classes},
                "labelled": len(labels),
                "skipped": len(counted) - len(labels),
                "last": None if not counted else [counted[-1].node, counted[-1].action, counted[-1].label],
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
        """Take an answer to the node that page number `number` shows; the state after it."""
        with self._lock:
            if self._file is None:
                raise Refused("this page is for reading only; start `bangs label` without --read-only to answer")
            counted = standing(self._answers)
            if number != len(self._answers):
                raise Stale("another page has gone on meanwhile; this is the present node")
            if action == "undo":
                if not counted:
                    raise Refused("there is nothing to take back")
                self._file.append(counted[-1].node, "undo")
            else:
                card = next(iter(self._cards()), None)
                if card is None or node != card["node"]:
                    raise Stale("this node is answered already; this is the present one")
                known = self.state()["classes"]
                self._file.append(card["node"], action, check_class(label, known) if action == "label" else "")
                self._seen[card["node"]] = card
            state = self.state()
        if self.refit is not None and self.waiting >= self.batch:
            self.refit()
        return state

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()

    def _cards(self) -> list[dict[str, Any]]:
        """The cards without an answer, in their order; a node that was just taken back comes first."""
        done = {own.node for own in standing(self._answers)}
        cards = [card for card in self._queue["cards"] if card["node"] not in done]
        if self._answers and self._answers[-1].action == "undo":
            last = self._answers[-1].node
            first = [card for card in cards if card["node"] == last] or [self._seen[last]] * (last in self._seen)
            cards = first + [card for card in cards if card["node"] != last]
        return cards
