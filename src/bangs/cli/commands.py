"""The commands by name, loaded lazily.

Importing torch takes seconds. So the file of a command imports heavy modules inside its function only, and `bangs fit
--help` is fast.
"""

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
# in the order of the help; each command is the function with the name of its file
NAMES = (
    *("demo", "fit", "predict", "explain", "suggest", "label", "report"),
    *("run", "unblind", "convert", "reproduce", "table", "figure", "list"),
)

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
    """The commands of `bangs`; only their names are known until one is called, or all are listed."""

    def __init__(self, **settings: Any):
        super().__init__(**{**settings, "commands": dict.fromkeys(NAMES)})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return load(cmd_name) if cmd_name in NAMES else None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C prints one line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("bangs: interrupted", file=sys.stderr)
            raise


def load(name: str) -> Any:
    """Import a command with its options."""
    single = typer.Typer(add_completion=False, rich_markup_mode="rich", context_settings=HELP_OPTIONS)
    single.command(name)(getattr(import_module(f"bangs.cli.{name}"), name))
    command: Any = typer.main.get_command(single)
    for param in command.get_params(typer.Context(command, help_option_names=HELP_OPTIONS["help_option_names"])):
        if getattr(param, "is_flag", False):
            param.metavar = ""  # the help would show <bool>, as if a value followed
    return command


def memory_advice() -> str:
    """Advice after memory ran out, with options of the command that was called."""
    name = next((argument for argument in sys.argv[1:] if argument in NAMES), None)
    options = {} if name is None else {option for param in load(name).params for option in param.opts}
    advices = [advice for option, advice in _LESS_MEMORY.items() if option in options]
    return "; or ".join([*advices, "use a machine with more memory"])
