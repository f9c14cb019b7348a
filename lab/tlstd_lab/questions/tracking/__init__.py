"""Beyond the paper: constant β against the running average 1/t when rewards or dynamics change half-way."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={
        "tracking-rewards": "panel:Rewards",
        "tracking-dynamics": "panel:Dynamics",
        "tracking-krylov-rewards": "panel:KrylovRewards",
        "tracking-krylov-dynamics": "panel:KrylovDynamics",
    },
    tasks={"tracking": Task("task:tracking")},
)
