"""The runs behind the report's rank explorer."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    tasks={"explore": Task("task:explore"), "explore-truth": Task("task:truth")},
)
