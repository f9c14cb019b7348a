"""Beyond the paper: control. Policies from logs of random actions, LSPI's own problems, and policies that improve."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={
        "control-chain": "lspi_panels:Chains",
        "control-pole": "lspi_panels:Pole",
        "control-logs": "panel:Logs",
        "control-beta": "panel:Beta",
    },
    tasks={
        "control-chain": Task("task:chain"),
        "control-success": Task("task:success"),
        "control-improvement": Task("task:improvement"),
    },
)
