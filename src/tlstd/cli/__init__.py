"""The command line: one file per command.

``tlstd --install-completion`` makes the shell complete commands, options and names.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command line, or say what to install for it; Ctrl-C, also during imports, is one line and code 130."""
    if sys.stdout is None:
        sys.exit("standard output is closed, and the answer would be lost: redirect it to a file or to /dev/null")
    try:
        _run()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    finally:  # Ctrl-C from here on ends the process at once, without a traceback of what is being closed
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run() -> None:
    """Run the command line."""
    import atexit
    import gc
    import os
    from contextlib import suppress

    from tlstd.core.extras import needs
    from tlstd.errors import MissingExtraError

    # When the command ends, Python would collect garbage once more: a tenth of the time of a small `tlstd evaluate`.
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
    except ValueError:
        if not sys.stdout.closed:
            raise
        sys.exit("a policy has closed standard output, and the answer is lost: take close() out of its module")
