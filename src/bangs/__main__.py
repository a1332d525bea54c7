"""The program `bangs`, also as `python -m bangs`: a Ctrl-C at any moment ends it without a traceback."""

import sys


def main() -> None:
    """Import the command line and run it."""
    try:
        from bangs.utils.signals import defer_interrupts_during_imports

        with defer_interrupts_during_imports():
            from bangs.cli import main

            main()
    except KeyboardInterrupt:
        print("bangs: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
