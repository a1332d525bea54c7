"""Evaluation protocols: which round of a run counts, and its score."""

from collections.abc import Sequence
from typing import Literal

from bangs.selftraining.best_round import best_round

Protocol = Literal["validation", "best_test", "last", "blind"]
PROTOCOLS: dict[str, str] = {
    "validation": "test accuracy at the round with the best validation accuracy",
    "best_test": "best test accuracy after round 0, chosen by test labels (an oracle)",
    "last": "test accuracy of the last round",
    "blind": "best validation accuracy of all rounds; no test label was opened",
}


def score(protocol: str, validation: Sequence[float], test: Sequence[float] = ()) -> float:
    """The score of a run from its validation and test accuracies, one per round."""
    if protocol == "blind":
        return validation[best_round(validation)]
    if protocol == "validation":
        return test[best_round(validation)]
    return max(test[1:] or test) if protocol == "best_test" else test[-1]
