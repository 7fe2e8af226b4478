"""`python -m omnitide_cli` is `omnitide`."""

from omnitide_cli.entry import main

main()
