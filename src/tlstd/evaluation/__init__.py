"""From a log to the value of a policy, with an interval and checks; true values; choices by held-out data.

Example
-------
>>> from tlstd.domains.mountain_car import MountainCar
>>> car = MountainCar()
>>> true_values(car, car.grid()).shape
(400,)
"""

from tlstd.evaluation.bootstrap import bootstrap_interval
from tlstd.evaluation.choose import Choice, choose
from tlstd.evaluation.comparison import Comparison, difference
from tlstd.evaluation.episode_values import EpisodeValue
from tlstd.evaluation.evaluate import evaluate
from tlstd.evaluation.evaluation import Evaluation, Row
from tlstd.evaluation.fitted import Fitted, LeftOut, Starts
from tlstd.evaluation.influence import Asked, Influence, influences
from tlstd.evaluation.intervals import Interval, difference_interval, interval_of, mean_interval
from tlstd.evaluation.policies import Target
from tlstd.evaluation.returns import Returns, Score, returns, score
from tlstd.evaluation.silence import Limits, Missing, Silence, SilentInterval
from tlstd.evaluation.supported import Support
from tlstd.evaluation.true_values import Estimate, rollout_values, true_values
from tlstd.evaluation.trust import Check, Trust
from tlstd.evaluation.value_function import Encoded, ValueFunction
from tlstd.evaluation.views import EpisodeTrace, Map, Views
from tlstd.evaluation.whole_episodes import WholeEpisodes

__all__ = [
    "Asked",
    "Check",
    "Choice",
    "Comparison",
    "Encoded",
    "EpisodeTrace",
    "EpisodeValue",
    "Estimate",
    "Evaluation",
    "Fitted",
    "Influence",
    "Interval",
    "LeftOut",
    "Limits",
    "Map",
    "Missing",
    "Returns",
    "Row",
    "Score",
    "Silence",
    "SilentInterval",
    "Starts",
    "Support",
    "Target",
    "Trust",
    "ValueFunction",
    "Views",
    "WholeEpisodes",
    "bootstrap_interval",
    "choose",
    "difference",
    "difference_interval",
    "evaluate",
    "influences",
    "interval_of",
    "mean_interval",
    "returns",
    "rollout_values",
    "score",
    "true_values",
]
