"""Figures B.1 to B.7: both domains, both kinds of features, and run times."""

from tlstd_lab.question import Question

QUESTION = Question(
    part="Appendix B",
    panels={
        "B.1": "panel:CarTiles",
        "B.2": "panel:PendulumTiles",
        "B.3": "panel:CarRBF",
        "B.4": "panel:PendulumRBF",
        "B.5": "panel:RankTilesAgain",
        "B.6": "panel:RankRBFAgain",
        "B.7": "run_times:RunTimes",
    },
)
