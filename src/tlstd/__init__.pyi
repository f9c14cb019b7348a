"""The public names: what is listed here can be imported from ``tlstd``, and the listed packages' own lists."""

from tlstd.control.lspi import policy_iteration as policy_iteration
from tlstd.control.policies import GreedyPolicy as GreedyPolicy
from tlstd.control.sigma_points import sigma_point_policy_iteration as sigma_point_policy_iteration
from tlstd.data.transitions import Transition as Transition
from tlstd.data.transitions import TransitionBuilder as TransitionBuilder
from tlstd.data.transitions import Transitions as Transitions
from tlstd.data.vectors import SparseVector as SparseVector
from tlstd.domains.baird import baird as baird
from tlstd.domains.boyan_chain import boyan_chain as boyan_chain
from tlstd.domains.mdp import MarkovRewardProcess as MarkovRewardProcess
from tlstd.domains.random_walk import random_walk as random_walk
from tlstd.errors import BusyError as BusyError
from tlstd.errors import CapacityError as CapacityError
from tlstd.errors import InvalidInputError as InvalidInputError
from tlstd.errors import InvalidParameterError as InvalidParameterError
from tlstd.errors import MissingExtraError as MissingExtraError
from tlstd.errors import ReadOnlyError as ReadOnlyError
from tlstd.errors import StateError as StateError
from tlstd.errors import TlstdError as TlstdError
from tlstd.estimators import *
from tlstd.estimators.loading import load as load
from tlstd.estimators.merging import merge as merge
from tlstd.evaluation.evaluate import evaluate as evaluate
from tlstd.features import *
from tlstd.horde.horde import Horde as Horde
from tlstd.horde.questions import Question as Question
from tlstd.horde.steps import Steps as Steps
from tlstd.logs.log import Log as Log
from tlstd.warmup import warm_up as warm_up

__version__: str
__all__: list[str]
