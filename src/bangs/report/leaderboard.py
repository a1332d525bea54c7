"""Leaderboard: a table of the candidates of an automatic fit."""

from collections.abc import Mapping, Sequence
from typing import Any

HEAD = ("model", "method", "sees", "weight", "accuracy", "log-likelihood", "round", "tried")
_STANDING = {"whole": "to the end", "behind": "stopped: clearly behind", "time": "stopped: time limit"}


def leaderboard(board: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """One row of cells per candidate, with the columns `HEAD`; none if there was one candidate only.

    Accuracy and log-likelihood are on labels that the models had not learned, with 95 % intervals.
    """
    return [_row(line) for line in board] if len(board) > 1 else []


def averaged(board: Sequence[Mapping[str, Any]]) -> int:
    """The number of candidates with weight in the predictions; 0 if there was one candidate only."""
    return sum(line["weight"] > 0 for line in board) if len(board) > 1 else 0


def _row(line: Mapping[str, Any]) -> list[str]:
    accuracy, likelihood = line.get("accuracy"), line.get("log_likelihood")
    return [
        *(str(line[name]) for name in ("model", "method", "features")),
        f"{line['weight']:.0%}" if line["weight"] > 0 else "–",
        f"{accuracy['value']:.1%} ({accuracy['low']:.1%} to {accuracy['high']:.1%})" if accuracy else "–",
        f"{likelihood['value']:.2f} ({likelihood['low']:.2f} to {likelihood['high']:.2f})" if likelihood else "–",
        str(line["round"]),
        f"{_STANDING.get(line['standing'], line['standing'])}, {line['seconds']:.1f} s",
    ]
