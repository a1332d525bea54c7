"""Commands are listed at once and loaded when they are called."""

import subprocess
import sys

import pytest
from tests.cli.speaking import bangs

from bangs.cli.commands import FILES, first_words, load


def test_help_and_completion_do_not_wait_for_torch() -> None:
    code = (
        "import sys; from bangs.cli import app; from typer.testing import CliRunner;"
        "said = CliRunner().invoke(app, ['--help']); assert 'predict' in said.output, said.output;"
        "said = CliRunner().invoke(app, [], env={'_BANGS_COMPLETE': 'complete_bash', 'COMP_WORDS': 'bangs pre',"
        " 'COMP_CWORD': '1'}, prog_name='bangs'); assert said.output.split() == ['predict'], said.output;"
        "slow = {'torch', 'pandas', 'scipy', 'sklearn', 'matplotlib'} & sys.modules.keys(); assert not slow, slow"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", FILES)
def test_a_command_is_listed_with_the_first_words_of_its_own_help(name: str) -> None:
    assert " ".join(load(name).help.split()).startswith(" ".join(first_words(name).split()))
    assert len(first_words(name)) > 20


def test_a_command_spelled_wrong_is_named_with_a_near_one() -> None:
    said = bangs("predct")
    assert said.code == 2
    assert "No such command 'predct'" in said.err
    assert "predict" in said.err


def test_public_names_come_when_they_are_asked_for() -> None:
    import bangs as package

    assert set(package.__all__) <= set(dir(package))
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match="module 'bangs' has no attribute 'nothing'"):
        _ = package.nothing
