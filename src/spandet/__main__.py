"""`python -m spandet` is `spandet`."""

from spandet.cli import main

main()
