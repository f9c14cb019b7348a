"""The command line. ``tlstd --install-completion`` makes the shell complete commands, options and names."""

from __future__ import annotations

import sys

from tlstd.errors import MissingExtraError
from tlstd.extras import needs


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        with needs("typer", "rich"):
            from tlstd.cli.app import app
    except MissingExtraError as error:
        sys.exit(str(error))
    try:
        app()
    except OSError as error:  # a disk that is full, a folder that is gone: nobody's bug
        where = f"{error.filename}: " if error.filename else "cannot go on: "
        sys.exit(where + (error.strerror or str(error)))
