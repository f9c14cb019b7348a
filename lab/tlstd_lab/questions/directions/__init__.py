"""Beyond the paper: how much of a value function lies in the leading singular and in the first Krylov directions."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={
        "directions-tiles-0": "panel:TilesZero",
        "directions-tiles-0.9": "panel:TilesLong",
        "directions-rbf-0": "panel:RBFZero",
        "directions-rbf-0.9": "panel:RBFLong",
    },
    tasks={"directions": Task("task:directions")},
)
