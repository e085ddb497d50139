"""`python -m weft` is `weft`. Read next: cli.py."""

from weft.cli import main

main()
