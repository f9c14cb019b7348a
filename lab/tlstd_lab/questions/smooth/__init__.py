"""Figure 3 with smooth features: do the paper's claims on energy hold with random Fourier features instead of tiles?"""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={
        "smooth-3a": "panel_a:Ranks",
        "smooth-3b": "panel_b:Methods",
        "smooth-time": "times:Times",
        "smooth-3c": "panel_c:Rates",
        "smooth-constant": "constant:Constant",
    },
    tasks={"smooth-rates": Task("task:rates")},
)
