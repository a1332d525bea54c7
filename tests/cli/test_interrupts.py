"""Ctrl-C at any moment of the start: no traceback, exit code 130."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

# SIGINT arrives when a module is looked for, amid the import of whoever imports it
SCRIPT = """
import importlib.abc, os, signal, sys

class Strike(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in interrupted_process:
            interrupted_process.remove(name)
            os.kill(os.getpid(), signal.SIGINT)

interrupted_process = sys.argv.pop(1).split(",")
sys.meta_path.insert(0, Strike())
sys.argv[0] = "bangs"
from bangs.__main__ import main
main()
"""
MODULES = ["typer", "torch._C", "numpy._core.multiarray", "bangs.selftraining.loop"]


def interrupted_process(modules: str, *words: str, script: str = SCRIPT) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", script, modules, *words], capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize("module", MODULES)
def test_a_signal_amid_an_import_waits_for_its_end(module: str) -> None:
    result = interrupted_process(module, "run", "--rounds", "0", "--seeds", "1")
    assert result.returncode == 130, result.stderr
    assert result.stderr == "bangs: interrupted\n"
    assert result.stdout == ""


def test_a_second_one_does_not_wait(tmp_path: Path) -> None:
    """Such as where a person's own code is imported and never ends."""
    code = tmp_path / "mine.py"
    code.write_text(
        "import os, signal, time\n"
        "for _ in range(2):\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(0.3)\n"
        "print('outlived')\n"
    )
    result = interrupted_process("none", "run", "--code", str(code))
    assert result.returncode == 130
    assert "outlived" not in result.stdout
    assert "Traceback" not in result.stderr


def test_an_ignored_signal_stays_ignored() -> None:
    """As a shell starts jobs in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = interrupted_process("typer", "--version")
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("bangs ")


def test_the_console_script_is_guarded_from_its_first_import() -> None:
    process = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import bangs.__main__"], capture_output=True, text=True, check=True
    )
    heavy = {"typer", "rich", "click", "torch", "numpy"}
    assert not heavy & {line.rpartition("|")[2].strip() for line in process.stderr.splitlines()}
