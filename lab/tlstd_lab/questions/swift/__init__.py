"""Beyond the paper: how much SwiftTD depends on its parameters, and on its parts, after Javed and others (2024)."""

from tlstd_lab.question import Question

QUESTION = Question(panels={"swift": "panel:Swift"})
