"""How Sphinx makes the site of these pages.

uv run sphinx-build -W --keep-going -b html docs docs/_build
"""

from __future__ import annotations

import sys
from pathlib import Path

from tlstd import __version__

project = "tlstd"
author = "the tlstd contributors"
copyright = "the tlstd contributors"
version = release = __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "complete", "reference"]
exclude_patterns = ["_build"]

# --- Markdown: the pages are also read as they are, on a code host ----------------------------------------------------

myst_heading_anchors = 4
highlight_language = "none"  # of indented blocks, which are mostly commands

# --- the reference, from docstrings -----------------------------------------------------------------------------------

autosummary_generate = False  # tables of names only: a page per object takes longer to build and to read
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_use_type_comments = False  # there are none, and to look for them every function is parsed
autodoc_type_aliases = {name: f"tlstd.data.transitions.{name}" for name in ("FloatArray", "IntArray", "Matrix")}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

# --- every reference has to lead somewhere ----------------------------------------------------------------------------

nitpicky = True
nitpick_ignore_regex = [
    (r"py:class", r"Fold"),  # a callable with a number
    # What other packages document has no address here: nothing is fetched while building.
    (r"py:.*", r"(np|numpy|sp|scipy|gymnasium|matplotlib|rich|collections|abc|typing|os|pathlib|builtins)\..*"),
    (r"py:class", r"NDArray|ArrayLike|Axes|Env|VectorEnv|RenderableType|Path|Mapping\[(str|float)|T|Model"),
    # Words for a choice of types or strings, and for a pair.
    (r"py:func", r"skewness_of"),
    (r"py:class", r"Alignment|Features|Part|Tick|Value|Verdict|About|Auto|Convention|Ends|InfluenceKind|Interest"),
    (r"py:class", r"Judging|Kind|OnError|OnNan|Preset|Probabilities|Reads|Solver|Start|Told|Trace|TypeAliasForwardRef"),
    # The inside of the library has docstrings, but no page.
    (
        r"py:.*",
        r"(tlstd\.)?(cluster\.part|core|evaluation\.(fits|intervals|ladder|rungs|steps|trust\.evidence)|file_format|data|classic|krylov|truncated|zoo|domains\.cache)(\..*)?|tlstd_lab\.(tasks|store)(\..*)?|Store",
    ),
]

html_theme = "furo"
html_title = f"tlstd {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
