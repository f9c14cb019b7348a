"""The command line: one file per command.

``tlstd --install-completion`` makes the shell complete commands, options and names.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress

from tlstd.core.extras import needs
from tlstd.errors import MissingExtraError


def main() -> None:
    """Run the command line, or say what to install for it.

    At the end the garbage collector need not look through all that was imported: that takes a quarter of a second.
    """
    atexit.register(gc.freeze)
    try:
        with needs("typer", "rich"):
            from tlstd.cli.app import app
    except MissingExtraError as error:
        sys.exit(str(error))
    with suppress(AttributeError):  # of what stands in for it
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # λ in a code page without
    try:
        app()
    except OSError as error:  # commands say their own: this is the output's
        with suppress(OSError, AttributeError, ValueError):  # Python would try to write it once more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(f"{error.filename or 'the output'} cannot be written ({error.strerror})")
