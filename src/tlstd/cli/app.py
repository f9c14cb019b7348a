"""The commands by name: the one line to add for a new one. Other packages add theirs by entry points.

A command is a module with ``SHORT_HELP``, a function ``command``, and ``EXAMPLES`` (lines of a shell, shown under its
help); it imports what it needs when it runs.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

COMMANDS = {
    "evaluate": "tlstd.cli.evaluate",
    "predict": "tlstd.cli.predict",
    "demo": "tlstd.cli.demo",
    "inspect": "tlstd.cli.inspect",
}

GROUP = "tlstd.commands"
"""The entry points of other packages."""


class _Printable(TyperGroup):
    """Says mistakes without raw escapes, since words of the command line may be names of files: ``tlstd inspect *``.

    Ctrl-C is one line and exit code 130.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
            raise typer.Exit(130) from None
        except Exception as error:
            words = getattr(error, "message", None)
            if isinstance(words, str) and hasattr(error, "show"):  # the parser's
                from tlstd.core.file_format import printable, without_credentials

                vars(error)["message"] = "\n".join(map(printable, without_credentials(words).split("\n")))
            raise


class _Once(TyperCommand):
    """Refuses an option of one value that is given twice, of which only the last would count."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words behind the command's name."""
        given = [] if ctx.resilient_parsing else self.make_parser(ctx).parse_args(args=list(args))[2]
        for option in given:
            if not isinstance(option, TyperOption) or option.multiple or option.is_flag:
                continue
            if given.count(option) > 1:
                raise typer.BadParameter(f"it is given {given.count(option)} times: give it once", ctx, option)
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Printable,
    help="Incremental truncated LSTD: value functions from streams and logs of experience.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the same help in a terminal and in a pipe
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from tlstd import __version__

        typer.echo(f"tlstd {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Incremental truncated LSTD: value functions from streams and logs of experience."""


_modules = {name: import_module(where) for name, where in COMMANDS.items()}
_modules |= {point.name: point.load() for point in entry_points(group=GROUP)}
for _name, _module in _modules.items():
    _lines = [f"  {line}" for line in getattr(_module, "EXAMPLES", ())]
    _examples = "\n".join(["\b", "Examples:", *_lines]) if _lines else None  # \b: as they are, not wrapped
    app.command(_name, cls=_Once, short_help=_module.SHORT_HELP, epilog=_examples)(_module.command)
