"""Figures 1a and 1b: error against rank on Mountain Car."""

from tlstd_lab.question import Question

QUESTION = Question(
    panels={
        "1a": "panel:RankTiles",
        "1b": "panel:RankRBF",
    },
)
