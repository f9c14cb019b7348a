"""Beyond the paper: who diverges, on Baird's counterexample and on the spiral, and gradient TD's simple problems."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={
        "diverging-baird": "panel:OnBaird",
        "diverging-spiral": "panel:OnSpiral",
        "tdrc-simple": "simple:Simple",
    },
    tasks={"stability": Task("task:stability", version=2), "projected-area": Task("task:projected_area")},
)
