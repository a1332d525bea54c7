"""Commands by name: listed, and their options read, before anything waits for torch.

Torch takes seconds to import. So a command's file imports what the work needs inside its function, and what the
function calls that needs more is in a file of its own: `bangs fit --help` answers at once.
"""

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from bangs.cli.known_names import docstring

HELP = {"help_option_names": ["-h", "--help"]}
# in the order of the help; a command is the function of its file's name
NAMES = (
    *("demo", "fit", "predict", "explain", "suggest", "label", "report"),
    *("run", "unblind", "convert", "reproduce", "table", "figure", "list"),
)
FILES = {name: "list_names" if name == "list" else name for name in NAMES}

# options that lower the memory a command needs
_LESS_MEMORY = {
    "--seeds": "lower --seeds, which are trained at once",
    "--candidates": "lower --candidates",
    "--batch-size": "train in batches with --batch-size",
    "--jobs": "lower --jobs",
    "--half": "store features in half the space with --half",
    "--device": "try another --device",
}


class Commands(TyperGroup):
    """The commands of `bangs`, each known by name and first words until it is called."""

    def __init__(self, **settings: Any):
        super().__init__(**{**settings, "commands": {name: _Later(name, help=first_words(name)) for name in FILES}})

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("bangs: interrupted", file=sys.stderr)
            raise


class _Later(TyperCommand):
    """A command whose file is imported when its arguments are to be read."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return load(str(self.name)).make_context(info_name, args, parent, **extra)


def load(name: str) -> Any:
    """The command of that name, with its options."""
    file = FILES[name]
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich", context_settings=HELP)
    alone.command(name)(getattr(import_module(f"bangs.cli.{file}"), file))
    return typer.main.get_command(alone)


def memory_advice() -> str:
    """What to try where memory ran out, with the options of the command that was typed."""
    name = next((word for word in sys.argv[1:] if word in FILES), None)
    options = {} if name is None else {option for param in load(name).params for option in param.opts}
    ways = [words for option, words in _LESS_MEMORY.items() if option in options]
    return "; or ".join([*ways, "use a machine with more memory"])


def first_words(name: str) -> str:
    """The first paragraph of a command's docstring, read from its file without running it."""
    return docstring(f"cli.{FILES[name]}", FILES[name]).split("\n\n")[0]
