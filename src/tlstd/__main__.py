"""``python -m tlstd``."""

from tlstd.cli import main

main()
