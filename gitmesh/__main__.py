"""`python -m gitmesh`."""

from gitmesh.cli.main import main

main()
