"""Beyond the paper: features that say nothing, and an ℓ1 penalty against them, after Kolter and Ng (2009)."""

from tlstd_lab.question import Question, Task

QUESTION = Question(panels={"selection": "panel:Selection"}, tasks={"selection": Task("task:selection")})
