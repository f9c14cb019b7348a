"""Better policies from recorded steps, by policy iteration with least squares.

Example
-------
>>> sorted(__all__)
['GreedyPolicy', 'Iteration', 'PolicyIteration', 'policy_iteration', 'sigma_point_policy_iteration']
"""

from tlstd.control.iteration import Iteration, PolicyIteration
from tlstd.control.lspi import policy_iteration
from tlstd.control.policies import GreedyPolicy
from tlstd.control.sigma_points import sigma_point_policy_iteration

__all__ = ["GreedyPolicy", "Iteration", "PolicyIteration", "policy_iteration", "sigma_point_policy_iteration"]
