"""What is in a saved model, and whether its rank fits: ``tlstd inspect`` (``docs/state.md``).

Pure functions of a model: :func:`examine` and :func:`examine_file` say what there is to say as an :class:`Inspection`,
:func:`render` shows it in a terminal.
"""

from tlstd.inspection.advice import Advice, advise
from tlstd.inspection.examine import SCHEMA, Factors, Inspection, examine, examine_file
from tlstd.inspection.render import plot, render

__all__ = ["SCHEMA", "Advice", "Factors", "Inspection", "advise", "examine", "examine_file", "plot", "render"]
