"""Beyond the paper: error against memory, of samples kept and folded, of ranks, of all of A."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={"memory-energy": "panel:Energy", "memory-car-tiles": "panel:CarTiles", "memory-car-rbf": "panel:CarRBF"},
    tasks={"memory": Task("task:memory")},
)
