"""The example's folder, fitted once for all commands that read it."""

from pathlib import Path

import pytest

from tests import EXAMPLES
from tests.cli.invoke import bangs


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `bangs fit examples/own-graph` writes, with little training."""
    out = tmp_path_factory.mktemp("fitted") / "library"
    result = bangs(
        "fit",
        EXAMPLES / "own-graph",
        "--out",
        out,
        "--method",
        "hard",
        "--validation",
        0.25,
        "--rounds",
        3,
        "--epochs",
        30,
        "--quiet",
    )
    assert result.code == 0, result.err
    return out
