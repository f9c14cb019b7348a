"""From a log to the value of a policy, with an interval and checks; true values; choices by held-out data.

Example
-------
>>> from tlstd.domains.mountain_car import MountainCar
>>> car = MountainCar()
>>> true_values(car, car.grid()).shape
(400,)
"""

from tlstd.core.public import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
