"""`python -m bangs` is `bangs`."""

from bangs.cli import main

main()
