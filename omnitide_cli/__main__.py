"""`python -m omnitide_cli` is `omnitide`."""

from omnitide_cli.app import main

main()
