"""Beyond the paper: energy domains of other parameters. Does the ranking hold, and does the paper's claim anywhere?"""

from tlstd_lab.question import Question

QUESTION = Question(panels={"instances": "panel:Instances"})
