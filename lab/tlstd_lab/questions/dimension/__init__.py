"""Beyond the paper: error against Krylov dimension beside error against rank, and two solutions in one space."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={
        "dimension-energy": "panel:Energy",
        "dimension-car-tiles": "panel:CarTiles",
        "dimension-car-rbf": "panel:CarRBF",
        "dimension-pendulum": "panel:Pendulum",
        "dimension-garnet": "panel:Garnets",
    },
    tasks={"dimension": Task("task:dimension"), "dimension-garnet": Task("task:garnet")},
)
