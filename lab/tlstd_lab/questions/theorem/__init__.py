"""Theorem 1: does the bound hold, how tight is it, and where is the best rank?"""

from tlstd_lab.question import Question, Task

QUESTION = Question(
    panels={"theorem-bound": "panel:Bound", "theorem-trade-off": "panel:TradeOff"},
    tasks={
        "theorem": Task("task:cases"),
        "theorem-rows": Task("task:rows"),
        "trade-off": Task("task:trade_off"),
        "trade-off-medians": Task("task:trade_off_medians"),
        "tikhonov": Task("task:tikhonov"),
        "vanishing": Task("task:vanishing"),
    },
)
