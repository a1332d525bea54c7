"""Leaderboard: a table of the candidates of an automatic fit."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bangs.utils.text import percent

HEAD = ("model", "method", "sees", "weight", "accuracy", "log-likelihood", "round", "tried")
_STANDING = {"whole": "to the end", "behind": "stopped: clearly behind", "time": "stopped: time limit"}


def leaderboard(board: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """One row of cells per candidate, with the columns `HEAD`; none if there was one candidate only.

    Accuracy and log-likelihood are on held-out labels, with 95 % intervals.
    """
    return [_row(line) for line in board] if len(board) > 1 else []


def averaged(board: Sequence[Mapping[str, Any]]) -> int:
    """The number of candidates with weight in the predictions; 0 if there was one candidate only."""
    return sum(line["weight"] > 0 for line in board) if len(board) > 1 else 0


def _row(line: Mapping[str, Any]) -> list[str]:
    accuracy, likelihood = line.get("accuracy"), line.get("log_likelihood")
    return [
        *(str(line[name]) for name in ("model", "method", "features")),
        percent(line["weight"], 0) if line["weight"] > 0 else "–",
        _with_interval(accuracy, percent) if accuracy else "–",
        _with_interval(likelihood, "{:z.2f}".format) if likelihood else "–",
        str(line["round"]),
        f"{_STANDING.get(line['standing'], line['standing'])}, {line['seconds']:.1f} s",
    ]


def _with_interval(score: Mapping[str, float], text: Callable[[float], str]) -> str:
    return f"{text(score['value'])} ({text(score['low'])} to {text(score['high'])})"
