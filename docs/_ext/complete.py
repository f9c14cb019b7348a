"""The reference is complete: a build ends with an error if a public name is missing from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

from sphinx.application import Sphinx
from sphinx.errors import SphinxError

import tlstd
from tlstd.estimators.registry import CLASSES

PACKAGES = ("diagnostics", "domains", "evaluation", "features", "streams")
METHODS = ("update", "predict", "save", "clone")
"""What every estimator has; its section says so, or links to where it is described."""


def missing_names(documented: set[str]) -> Iterator[str]:
    """Public names that are not in the reference under any of their names."""
    yield from sorted({f"tlstd.{name}" for name in tlstd.__all__} - documented)
    for module in PACKAGES:
        package = import_module(f"tlstd.{module}")
        for name in package.__all__:
            home = getattr(getattr(package, name), "__module__", package.__name__)
            if not {f"{package.__name__}.{name}", f"{home}.{name}", f"tlstd.{name}"} & documented:
                yield f"{package.__name__}.{name}"


def missing_methods(page: str) -> Iterator[str]:
    """Methods that the section of an estimator neither describes nor links to."""
    for name in CLASSES:
        section = page.split(f'id="tlstd.{name}"')[1].split('<dl class="py class">')[0]
        for method in METHODS:
            if not re.search(rf'href="#[\w.]+\.{method}"|id="[\w.]+\.{method}"', section):
                yield f"{name}.{method}"


def check(app: Sphinx, exception: Exception | None) -> None:
    """Raise an error that names what is missing from the pages that were built."""
    if exception is not None or app.builder.name != "html":
        return
    page = (app.outdir / "api" / "estimators.html").read_text(encoding="utf-8")
    missing = [*missing_names(set(app.env.domains.python_domain.objects)), *missing_methods(page)]
    if missing:
        raise SphinxError(f"missing from docs/api: {', '.join(missing)}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the check."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
