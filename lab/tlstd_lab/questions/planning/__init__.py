"""Beyond the paper: a model of one step and of several, after van Seijen and Sutton (2015)."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={"planning-tabular": "panel:Tabular", "planning-groups": "panel:Groups"},
    tasks={"planning": Task("task:planning")},
)
