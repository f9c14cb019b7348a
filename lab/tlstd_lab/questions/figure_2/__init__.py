"""Figures 2a and 2b: error against samples and against CPU time on Mountain Car."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    part="Figures 1 to 3",
    panels={"2a": "panel_a:CarRBFSamples", "2b": "panel_b:CarRBFTime"},
    tasks={"budget": Task("task:anew")},
)
