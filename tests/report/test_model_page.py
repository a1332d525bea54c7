"""The page of a classifier fitted in Python is that of the command line."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bangs import SelfTrainingClassifier, write_report
from bangs.errors import InvalidInput
from tests.conftest import two_rings

NAMES = [f"n{i}" for i in range(40)]


@pytest.fixture(scope="module")
def model() -> SelfTrainingClassifier:
    data = two_rings(40, 2)
    words = np.where(np.arange(40) < 16, np.array(["cat", "dog"])[data.y.numpy()], None)
    frame = pd.DataFrame(data.x.numpy(), index=NAMES)
    made = SelfTrainingClassifier(method="hard", validation=0.25, rounds=1, epochs=10)
    return made.fit(frame, words, edge_index=data.edge_index)


def test_it_holds_names_classes_and_title(model: SelfTrainingClassifier, tmp_path: Path) -> None:
    text = write_report(model, tmp_path / "mine.html", name="my <graph>").read_text()
    assert "my &lt;graph&gt;" in text
    assert all(f'"{word}"' in text for word in ("n0", "n39", "cat", "dog"))
    assert "Test accuracy" not in text
    assert write_report(model, tmp_path / "mine.html").exists()  # its own page may be replaced


def test_labels_that_are_known_by_now_are_a_test(model: SelfTrainingClassifier, tmp_path: Path) -> None:
    truth = pd.Series(np.array(["cat", "dog"])[two_rings(40, 2).y.numpy()], index=NAMES)[::-1]
    text = write_report(model, tmp_path / "mine.html", y=truth).read_text()
    assert re.search(r"Test accuracy.*?on 24 nodes used for nothing else", text, re.S)


def test_other_files_are_kept(model: SelfTrainingClassifier, tmp_path: Path) -> None:
    (tmp_path / "mine.html").write_text("mine")
    with pytest.raises(InvalidInput, match="was not written by"):
        write_report(model, tmp_path / "mine.html")
    with pytest.raises(InvalidInput, match=r"a page is an \.html file"):
        write_report(model, tmp_path / "mine.txt")
