"""Beyond the paper: the rank-r subspace from one λ, the equations from another."""

from tlstd_lab.question import Question

QUESTION = Question(
    panels={
        "subspace-car-tiles": "panel:CarTiles",
        "subspace-car-rbf": "panel:CarRBF",
        "subspace-pendulum-tiles": "panel:PendulumTiles",
        "subspace-pendulum-rbf": "panel:PendulumRBF",
        "subspace-energy": "panel:Energy",
    },
)
