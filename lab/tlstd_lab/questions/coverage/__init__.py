"""Beyond the paper: how often nominal 95% intervals cover the true value."""

from tlstd_lab.question import Question, Task

QUESTION = Question(panels={"coverage": "panel:Coverage"}, tasks={"coverage": Task("task:coverage")})
