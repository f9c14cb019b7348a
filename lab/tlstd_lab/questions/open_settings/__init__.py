"""What the paper leaves open (λ, cut-off, traces, start states), and how much its claims on the rank depend on it."""

from tlstd_lab.question import Question

QUESTION = Question(
    panels={"open-tiles": "panel:OpenTiles", "open-rbf": "panel:OpenRBF"},
)
