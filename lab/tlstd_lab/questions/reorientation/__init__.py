"""An open question of the paper: does an SVD that throws directions away re-orient itself?"""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={"reorientation": "panel:Reorientation"},
    tasks={"reorientation": Task("task:distance")},
)
