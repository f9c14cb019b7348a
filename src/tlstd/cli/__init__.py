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
    app()
