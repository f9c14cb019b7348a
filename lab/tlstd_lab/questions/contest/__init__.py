"""Beyond the paper: every method on every problem, error against samples and against CPU time, tuned on other seeds."""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={
        "contest-energy": "panel:Energy",
        "contest-energy-time": "panel:EnergyTime",
        "contest-car-tiles": "panel:CarTiles",
        "contest-car-tiles-time": "panel:CarTilesTime",
        "contest-car-rbf": "panel:CarRBF",
        "contest-car-rbf-time": "panel:CarRBFTime",
        "contest-pendulum": "panel:Pendulum",
        "contest-pendulum-time": "panel:PendulumTime",
        "contest-rate": "rates:Rates",
    },
    tasks={"contest": Task("task:contest"), "tune": Task("tuning:tune")},
)
