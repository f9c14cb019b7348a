"""``tlstd report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tlstd.cli.outputs import Force

SHORT_HELP = "Make one HTML page of stored results."
EXAMPLES = (
    "tlstd report",
    "tlstd report results/quick.parquet --out quick.html",
)


def command(
    results: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RESULTS", help="Packed runs or folders of runs; if none, what is here."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page.")] = Path("tlstd-report.html"),
    explore: Annotated[
        bool, typer.Option("--explore", help="Compute what the rank explorer lacks (5 minutes).")
    ] = False,
    store: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the runs that --explore computes.")] = Path(
        "tlstd-reproduction/runs"
    ),
    workers: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Processes; all cores if left out, 0 for this one.")
    ] = None,
    pack: Annotated[Path | None, typer.Option(metavar="FILE", help="File to pack the explorer's runs into.")] = None,
    force: Force = False,
) -> None:
    """Turn stored results into one self-contained HTML page: claims, figures and the rank explorer.

    If none are named, tlstd-reproduction/runs and results/*.parquet are taken.
    """
    from rich.console import Console

    from tlstd.cli.outputs import check_outputs
    from tlstd.core.file_format import replace_file
    from tlstd.errors import TlstdError
    from tlstd_lab.questions.explorer import settings as explorer
    from tlstd_lab.report import page, sources
    from tlstd_lab.runner import choose_executor, run_all, show_progress
    from tlstd_lab.store import Store

    if pack is not None and not explore:
        typer.echo("--pack is for what --explore computes: give both", err=True)
        raise typer.Exit(1)
    try:
        paths = list(results or sources.default_paths())
        try:  # before minutes of work, not after
            there = out.exists() or out.is_symlink()
            out.parent.mkdir(parents=True, exist_ok=True)
            if out.is_file():  # a device has nothing to lose
                check_outputs("--out", [out], ("page",), inputs=paths, force=force)
            with out.open("ab"):
                pass
            if not there:
                out.unlink()  # nothing is left behind if nothing comes
        except OSError as error:
            raise TlstdError(f"cannot write {out} ({error.strerror}): choose another file with --out") from error
        if pack is not None:
            check_outputs("--pack", [pack], ("runs",), inputs=paths, force=force)
        if explore:
            runs = Store(store, [path for path in paths if path.is_file()])
            with show_progress() as progress:
                done = run_all(explorer.specs("paper"), runs, choose_executor(None, workers), progress)
            if not done.complete:
                typer.echo(str(done), err=True)
                raise typer.Exit(done.exit_code)
            if pack is not None:
                runs.pack([spec.key for spec in explorer.specs("paper")], pack)
            paths += [store] if store.is_dir() and store not in paths else []
        with Console(stderr=True).status("drawing and deciding"):
            html = page.build(paths)
        if out.exists() and not out.is_file():
            out.write_text(html, encoding="utf-8")
        else:
            replace_file(out, lambda file: file.write(html.encode()))
    except OSError as error:
        typer.echo(f"{error.filename or out}: {error.strerror}", err=True)
        raise typer.Exit(1) from None
    except TlstdError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    typer.echo(f"written: {out} ({len(html.encode()) / 1e6:.1f} MB)")
