"""A usage error names the option, the rule, and what came."""

import pytest

from tests.cli.invoke import bangs


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "--k", "two"], "--k must be a whole number, got 'two'; see bangs run -h"),
        (["run", "--k=1.5"], "--k must be a whole number, got '1.5'; see bangs run -h"),
        (["run", "--noise", "x"], "--noise must be a number, got 'x'; see bangs run -h"),
        (["run", "--epochs", "0"], "--epochs must be at least 1, got '0'; see bangs run -h"),
        (["explain", "a", "b", "--top", "1000"], "--top must be at most 100, got '1000'; see bangs explain -h"),
        (["rn"], "no such command 'rn'. Did you mean 'run'? See bangs -h"),
        (["run", "--k"], "option '--k' requires an argument; see bangs -h"),
        (
            ["explain", "f", "-x"],
            "no such option: -x; an id that begins with a dash comes after --; see bangs explain -h",
        ),
    ],
)
def test_a_mistake_gives_a_clear_error(words: list[str], expected: str) -> None:
    result = bangs(*words)
    assert (result.code, result.err) == (2, f"bangs: {expected}\n")
