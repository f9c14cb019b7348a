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
from tlstd.evaluation.evaluation import Evaluation
from tlstd.page import answer, parts
from tlstd.page.markup import Html, element, join


def render(evaluation: Evaluation) -> str:
    """The page as text. Everything that comes from the log is escaped, and nothing on the page can run or load.

    Parameters
    ----------
    evaluation : Evaluation
        Of :func:`tlstd.evaluate`; its trust, interval and views are computed where they were not yet.
    """
    numbers = parts.Numbering()
    style = _file("page.css")
    sections = [made for made in (make(evaluation, numbers) for make in parts.SECTIONS) if made is not None]
    links = [element("a", section.short, href=f"#{section.name}") for section in sections]
    filled: dict[str, Any] = {
        "policy": policy(style),
        "title": f"Value {answer.headline(evaluation)} · {evaluation.source}",
        "style": Html(style),
        "nav": join(*links),
        "answer": answer.answer(evaluation),
        "sections": join(*(_section(section) for section in sections)),
        "footer": join(
            f"Made by tlstd {tlstd.__version__} from {evaluation.source}. "
            "The page is one file: nothing on it runs, and it asks nobody."
        ),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: join(filled[match[1]]), _file("page.html"))


def write_page(evaluation: Evaluation, path: str | os.PathLike[str]) -> None:
    """Write the page to a file, which is replaced as a whole or not at all."""
    replaceable(path)  # before it is made
    page = render(evaluation).encode()
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
