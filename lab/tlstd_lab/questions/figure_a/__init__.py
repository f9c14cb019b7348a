"""Figures A.1 to A.8: singular values of A, and how many hold its weight."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    part="Appendix A: singular values",
    panels={
        "A.1": "panel:CarTiles",
        "A.2": "panel:CarRBF",
        "A.3": "panel:CarTilings",
        "A.4": "panel:CarWidths",
        "A.5": "panel:PendulumTiles",
        "A.6": "panel:PendulumRBF",
        "A.7": "panel:PendulumTilings",
        "A.8": "panel:PendulumWidths",
    },
    tasks={"spectrum": Task("task:singular_values")},
)
