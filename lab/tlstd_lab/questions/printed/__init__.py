"""Beyond the paper: its algorithms as printed against the corrected ones."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={"printed": "panel:Printed"},
    tasks={"printed": Task("task:curve")},
)
