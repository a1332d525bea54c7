"""What Typer says of a mistyped value, in our words whatever its version."""

from types import SimpleNamespace

import pytest

from bangs.cli import usage_errors


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("Invalid value for '--k': Input should be a valid integer, unable to parse string", "a whole number"),
        ("Invalid value for '--k': Input should be greater than or equal to 1", "greater than or equal to 1"),
        ("Invalid value for '--k': 'two' is not a valid integer.", "a whole number"),
        ("Invalid value for '--k': 'two' is not a valid int range.", "a whole number"),
        ("Invalid value for '--k': 'two' is not a valid float.", "a number"),
        ("Invalid value for '--k': 0 is not in the range 1<=x<=100.", "in the range 1<=x<=100"),
    ],
)
def test_a_value_that_is_none_is_told_by_its_rule(words, told, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bangs", "run", "--k", "two"])
    context, option = SimpleNamespace(command_path="bangs run"), SimpleNamespace(opts=["--k"])
    usage_errors.tell(SimpleNamespace(ctx=context, param=option, format_message=lambda: words))
    assert capsys.readouterr().err == f"bangs: --k must be {told}, got 'two'; see bangs run -h\n"
