"""Beyond the paper: the cut-off of the singular values against the number of samples, and rules that choose it."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={"cutoff-tiles": "panel:CutoffTiles", "cutoff-rbf": "panel:CutoffRBF"},
    tasks={"cutoff": Task("task:cutoffs")},
)
