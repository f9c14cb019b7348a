"""Figures 2a and 2b: error against samples and against CPU time on Mountain Car."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={
        "2a": "panel:CarRBFSamples",
        "2b": "panel:CarRBFTime",
    },
    tasks={
        "budget": Task("task:anew"),
    },
)
