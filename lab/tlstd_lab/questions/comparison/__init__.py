"""Beyond the paper: every estimator on every problem of the laboratory, tuned on other seeds and as it comes."""

from tlstd_lab.question import Question

QUESTION = Question(panels={"comparison": "panel:Tuned", "comparison-untuned": "panel:Untuned"})
