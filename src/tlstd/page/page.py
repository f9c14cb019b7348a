"""The page: the answer first, then whether to trust it, then everything behind it."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from importlib.resources import files
from typing import Any

import tlstd
from tlstd.core.file_format import replace_file, replaceable
from tlstd.evaluation.report import Report
from tlstd.page import answer, parts
from tlstd.page.markup import Html, element, join


def render(report: Report) -> str:
    """The page as text. Everything that comes from the log is escaped, and nothing on the page can run or load.

    Parameters
    ----------
    report : Report
        Of :func:`tlstd.evaluate`. Its numbers are shown as they are; nothing is computed.
    """
    numbers = parts.Numbering()
    style = _file("page.css")
    sections = [made for made in (make(report, numbers) for make in parts.SECTIONS) if made is not None]
    links = [element("a", section.short, href=f"#{section.name}") for section in sections]
    filled: dict[str, Any] = {
        "policy": policy(style),
        "title": f"{answer.title(report)} · {report.source}",
        "style": Html(style),
        "nav": join(*links),
        "answer": answer.answer(report),
        "sections": join(*(_section(section) for section in sections)),
        "footer": join(
            f"Made by tlstd {tlstd.__version__} from {report.source}. "
            "The page is one file. It runs no script and loads nothing."
        ),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: join(filled[match[1]]), _file("page.html"))


def write_page(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page to a file, which is replaced as a whole or not at all."""
    replaceable(path)  # before it is made
    page = render(report).encode()
    replace_file(path, lambda file: file.write(page))


def policy(style: str) -> str:
    """The content-security policy: nothing may be loaded or run, and only this style is applied."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'"
    )


def _section(section: parts.Section) -> Html:
    title = f"{section.name}-title"
    heading = element("h2", section.title, id=title)
    return element("section", heading, *section.content, id=section.name, aria_labelledby=title)


def _file(name: str) -> str:
    return files("tlstd.page").joinpath(name).read_text(encoding="utf-8")
