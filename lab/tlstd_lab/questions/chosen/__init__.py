"""Beyond the paper: what held-out data choose against the best choice in hindsight, on all problems."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={"chosen": "panel:Chosen"},
    tasks={"chosen": Task("task:chosen"), "chosen-dimension": Task("task:dimension")},
)
