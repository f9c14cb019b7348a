"""Beyond the paper: how far should the basis grow before it is cut back? The buffer's effect on the error."""

from tlstd_lab.question import Question

QUESTION = Question(
    panels={"buffer": "panel:Buffer"},
)
