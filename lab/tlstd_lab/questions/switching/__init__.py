"""Beyond the paper: do ATD and "t-LSTD, then TD" remove the truncation bias, and when should one switch?"""

from tlstd_lab.question import Question

QUESTION = Question(
    panels={"bias": "panel:Bias", "switch": "panel:Switch"},
)
