"""How good value estimates are: true values to compare them with, and the choice of parameters by held-out data.

Example
-------
>>> from tlstd.domains.mountain_car import MountainCar
>>> car = MountainCar()
>>> true_values(car, car.grid()).shape
(400,)
"""

from tlstd.evaluation.choose import Choice, choose
from tlstd.evaluation.true_values import Estimate, rollout_values, true_values

__all__ = ["Choice", "Estimate", "choose", "rollout_values", "true_values"]
