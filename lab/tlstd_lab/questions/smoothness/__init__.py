"""Beyond the paper: how much predictions change from step to step, and what makes them change less."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={"smoothness-car": "panel:SmoothnessCar", "smoothness-energy": "panel:SmoothnessEnergy"},
    tasks={"smoothness": Task("task:smoothness")},
)
