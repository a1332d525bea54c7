"""Choices that are words: declared once, with one default each."""

import inspect
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import bangs
from bangs import Experiment, Method, SelfTrainingClassifier
from bangs.cli.commands import load
from bangs.selftraining.budget import Budget
from bangs.selftraining.defaults import CHOICES, MEMORY, POOL, START, TEACHER
from bangs.selftraining.methods import METHODS, method


def test_a_method_has_the_defaults() -> None:
    assert (Method().memory, Method().teacher, Method().start, Method().pool) == (MEMORY, TEACHER, START, POOL)
    assert set(CHOICES) <= {part.name for part in fields(Method)}


@pytest.mark.parametrize("name", METHODS)
def test_every_recipe_has_the_default_teacher_but_those_that_make_labels_anew(name: str) -> None:
    recipe = method(name, Budget())
    assert recipe.teacher == ("latest" if recipe.memory == "rebuild" else TEACHER)
    assert recipe.pool == POOL
    assert Experiment(method=name).self_trainer().method.teacher == recipe.teacher


def test_python_and_the_command_line_have_the_same() -> None:
    assert inspect.signature(SelfTrainingClassifier).parameters["teacher"].default == TEACHER
    fit, run = ({param.name: param for param in load(name).params} for name in ("fit", "run"))
    assert fit["teacher"].default == TEACHER
    assert run["teacher"].default is None  # the method's own
    assert run["pool"].default == POOL
    assert all(choice in str(run["teacher"].help) for choice in CHOICES["teacher"])


def test_no_other_file_lists_them() -> None:
    words = re.compile(r'"first", "latest"|"free", "open"|"accumulate", "rebuild"')
    files = [path.name for path in Path(bangs.__file__).parent.rglob("*.py") if words.search(path.read_text())]
    assert sorted(files) == ["defaults.py", "published_settings.py"]  # the latter narrows the type of one argument


def test_they_are_read_without_torch() -> None:
    script = "import sys, bangs.selftraining.defaults; print('torch' in sys.modules)"
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert completed.stdout == "False\n"
