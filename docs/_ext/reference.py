"""Docstrings as this library writes them, for Sphinx.

Signatures are shown as they stand in the source, with its own names for types. Napoleon reads NumPy's sections. Three
things are different here: the shapes and types of parameters and attributes are words for people, not names to be
linked; the docstring of an attribute is prose, whatever colons are in it; and bars are absolute values, not
substitutions. A name without its module (``:class:`Domain```) is looked up among all names.

The pages in ``api/`` are Jinja templates: ``estimators``, ``feature_maps`` and ``domains`` are the names of all there
are, and ``evaluation`` the kinds and names of what that package has.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterable
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import NumpyDocstring
from sphinx.util.inspect import stringify_signature

import tlstd.domains
import tlstd.evaluation
import tlstd.features
from tlstd.estimators.registry import CLASSES

SETTINGS: Any = Config(napoleon_use_param=False, napoleon_use_rtype=False)


class Docstring(NumpyDocstring):
    """NumPy's sections, with attributes in the form of parameters."""

    def _parse_attributes_section(self, section: str) -> list[str]:
        return self._format_fields("Attributes", self._consume_fields())


def read_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str, str] | None:
    """The signature without evaluating its annotations; None leaves it to Sphinx."""
    if signature is None or what not in ("class", "function", "method"):
        return None
    try:
        written = inspect.signature(obj)
    except (TypeError, ValueError):
        return None
    parameters = list(written.parameters.values())
    if what == "method" and parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    written = written.replace(parameters=parameters)
    if what == "class":
        written = written.replace(return_annotation=inspect.Signature.empty)
    scope = getattr(obj.__init__ if what == "class" else obj, "__globals__", {})
    arguments, _, result = _qualified(stringify_signature(written), scope).rpartition(" -> ")
    return (arguments, result) if arguments else (result, "")


def _qualified(text: str, scope: dict[str, Any]) -> str:
    """Put the module before each class of this library, so that the link leads to the right one of a name."""

    def full(found: re.Match[str]) -> str:
        value = scope.get(found[0])
        if not isinstance(value, type) or not value.__module__.startswith("tlstd."):
            return found[0]
        return f"{value.__module__}.{value.__qualname__}"

    return re.sub(r"\b[A-Z]\w*\b", full, text)


def read_docstring(app: Sphinx, what: Any, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn a docstring into reStructuredText, in place."""
    if what not in ("attribute", "data", "property"):
        lines[:] = Docstring(lines, SETTINGS, app, what, name, obj, options).lines()
    in_example = False
    for i, line in enumerate(lines):
        in_example = bool(line.strip()) and (in_example or line.lstrip().startswith(">>>"))
        if not in_example:
            lines[i] = re.sub(r"(``.*?``)|\|", lambda found: found[1] or r"\|", line)
    if what == "class" and isinstance(obj, type):
        lines += _inherited(obj, getattr(options, "inherited_members", None) or ())


def _inherited(cls: type, stop: Iterable[str]) -> list[str]:
    """Lines that list what a class has from others of this library: a sentence each, and where to read on.

    autodoc shows what is inherited from classes before ``stop`` in full; these are left out.
    """
    lines: list[str] = []
    in_full = set(vars(cls))
    for base in itertools.takewhile(lambda base: base.__name__ not in stop, cls.__mro__ if stop else ()):
        in_full |= set(vars(base))
    for base in cls.__mro__[1:]:
        if not base.__module__.startswith("tlstd"):
            continue
        names = [name for name, value in vars(base).items() if _is_public(name, value) and name not in in_full]
        in_full |= set(names)
        if names:
            owner = base.__qualname__  # wherever it is documented
            lines += ["", f"Also, of :class:`{owner}`:", ""]
            lines += [f"* :obj:`{name} <{owner}.{name}>`: {_summary(vars(base)[name])}" for name in names]
    return [*lines, ""] if lines else lines


def _is_public(name: str, value: Any) -> bool:
    return not name.startswith("_") and (isinstance(value, property | classmethod | staticmethod) or callable(value))


def _summary(member: Any) -> str:
    """The first sentence of a docstring, on one line."""
    words = " ".join((inspect.getdoc(member) or "").split("\n\n")[0].split())
    words = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"``\1``", words)  # names that are written for their own class
    first = re.match(r".*?[.:](?= [A-Z]|$)", words)
    return (first[0] if first else words).replace("|", r"\|")


def fill_in(app: Sphinx, docname: str, source: list[str]) -> None:
    """Write the names of what is registered into a page of the reference, in place."""
    if docname.startswith("api/"):
        source[0] = app.builder.templates.render_string(source[0], REGISTERED)  # type: ignore[attr-defined]


def find_short_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement) -> Any:
    """Resolve a reference by the end of its name, if only one object has it."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    found = {
        entry.node_id: (name, entry)
        for name, entry in _by_last_part(env).get(target.rpartition(".")[2], ())
        if f".{name}".endswith(f".{target}")
    }
    if len(found) != 1:
        return None
    ((name, entry),) = found.values()
    reference = nodes.reference("", "", internal=True, reftitle=name)
    reference["refuri"] = app.builder.get_relative_uri(node["refdoc"], entry.docname) + "#" + entry.node_id
    reference += content
    return reference


def _by_last_part(env: BuildEnvironment) -> dict[str, list[tuple[str, ObjectEntry]]]:
    """All documented objects by the last part of their names; made when the first reference is resolved."""
    if not _OBJECTS:
        for name, entry in env.domains.python_domain.objects.items():
            _OBJECTS.setdefault(name.rpartition(".")[2], []).append((name, entry))
    return _OBJECTS


_OBJECTS: dict[str, list[tuple[str, ObjectEntry]]] = {}


def _of_evaluation() -> list[tuple[str, str]]:
    """Kinds and names, classes first; without what the pages describe elsewhere."""
    found = [name for name in tlstd.evaluation.__all__ if name not in ("evaluate", "Evaluation")]
    kinds = {name: "class" if isinstance(getattr(tlstd.evaluation, name), type) else "function" for name in found}
    return sorted((kind, name) for name, kind in kinds.items())


REGISTERED = {
    "estimators": list(CLASSES),
    "feature_maps": [name for name in tlstd.features.__all__ if isinstance(getattr(tlstd, name), type)],
    "evaluation": _of_evaluation(),
    "domains": [
        f"{type(make()).__module__.rpartition('.')[2]}.{name}" for name, make in sorted(tlstd.domains.DOMAINS.items())
    ],
}


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect them."""
    app.connect("source-read", fill_in)
    app.connect("autodoc-process-signature", read_signature)
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("missing-reference", find_short_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
