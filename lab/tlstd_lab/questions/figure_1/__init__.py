"""Figures 1a and 1b: error against rank on Mountain Car."""

from tlstd_lab.question import Question

QUESTION = Question(
    part="Figures 1 to 3",
    panels={"1a": "panel:RankTiles", "1b": "panel:RankRBF"},
)
