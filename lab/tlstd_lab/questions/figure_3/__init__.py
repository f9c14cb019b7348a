"""Figures 3a, 3b and 3c: the energy domain, by rank, by method, and when samples come at a rate."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    part="Figures 1 to 3",
    panels={"3a": "panel_a:Ranks", "3b": "panel_b:Methods", "3c": "panel_c:Times"},
    tasks={"rates": Task("task:rates"), "runtime": Task("task:runtime")},
)
