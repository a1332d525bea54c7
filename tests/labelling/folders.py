"""Labelling folders for tests: a queue that no fit made, and a small graph of tables."""

import csv
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bangs.labelling.server import LabelServer
from bangs.labelling.session import Session
from tests.conftest import two_rings

CLASSES = ["ash", "oak", "yew"]
HOSTILE = "<img src=x onerror=alert(1)>"


def card(name: str, number: int) -> dict[str, Any]:
    near = [[f"n{(number + step) % 50}", CLASSES[step % 3], "given" if step % 2 else "predicted"] for step in range(4)]
    return {
        "rank": number + 1,
        "node": name,
        "row": number,
        "confidence": 0.5,
        "second_confidence": 0.3,
        "degree": 4,
        "like": 2,
        "removes": 0.01,
        "disagreement": 0.1,
        "reason": "The model is unsure: 'oak' (50%) or 'ash' (30%).",
        "probs": [["oak", 0.5], ["ash", 0.3], ["yew", 0.2]],
        "neighbours": near,
        "influences": [["n1", "oak", 0.4], ["n2", "ash", 0.2]],
        "cells": [["height", "12"], ["note", HOSTILE]],
    }


def queue_folder(folder: Path, count: int = 50) -> Path:
    """A folder whose queue has so many nodes, the first with an odd name."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [HOSTILE, *(f"n{number}" for number in range(1, count))]
    cards = [card(name, number) for number, name in enumerate(names)]
    (folder / "queue.json").write_text(
        json.dumps({"classes": CLASSES, "cards": cards, "notes": ["skipped: n99"], "strategy": "error"})
    )
    rows = [
        {"answers": 0, "labels": 10, "accuracy": 0.6, "low": 0.4, "high": 0.8, "judged": 10},
    ]
    (folder / "progress.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@contextmanager
def served(folder: Path, *, batch: int = 1000, read_only: bool = False) -> Iterator[LabelServer]:
    """A server in a thread of this process, without fits."""
    session = Session(folder, batch=batch, read_only=read_only)
    server = LabelServer(session, "trees")
    worker = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    worker.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        worker.join()
        session.close()


def answers_in(folder: Path) -> list[tuple[str, str, str]]:
    """Node, action and label of every row of labels.csv."""
    with (folder / "labels.csv").open(newline="") as file:
        return [(row["id"], row["action"], row["label"]) for row in csv.DictReader(file)]


def small_graph(folder: Path, nodes: int = 60) -> Path:
    """Tables of a graph of three classes with 12 labels."""
    folder.mkdir(parents=True)
    data = two_rings(nodes, 3)
    with (folder / "nodes.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "a", "b", "c", "label"])
        for node in range(nodes):
            features = [f"{value:.3f}" for value in data.x[node].tolist()]
            rows.writerow([f"n{node}", *features, CLASSES[int(data.y[node])] if node < 12 else ""])
    with (folder / "edges.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["source", "target"])
        rows.writerows([f"n{a}", f"n{b}"] for a, b in data.edge_index.T.tolist() if a < b)
    return folder


def truth_of(name: str) -> str:
    """The class of a node of `small_graph`."""
    return CLASSES[int(name.removeprefix("n")) % 3]


class Command:
    """`bangs label` as a process of its own."""

    def __init__(self, graph: Path, out: Path, *words: str):
        line = [sys.executable, "-m", "bangs", "label", str(graph), "--out", str(out), "--device=cpu", *words]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        first_line = self.process.stdout.readline()
        assert first_line.startswith("open http://127.0.0.1:"), (
            first_line,
            self.process.stderr and self.process.stderr.read(),
        )
        self.address = first_line.removeprefix("open ").strip()

    def __enter__(self) -> "Command":
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def wait_for(condition: Any, seconds: float = 120) -> Any:
    """What a function gives, as soon as it is true."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
    return value
