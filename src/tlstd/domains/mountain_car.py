"""Mountain Car: dynamics and the energy-pumping policy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, as_real, locked
from tlstd.core.extras import needs
from tlstd.domains.base import Domain, Picture, Step
from tlstd.domains.pictures import canvas, pixels
from tlstd.domains.policies import Deterministic
from tlstd.errors import InvalidParameterError

LOW: FloatArray = locked(np.array([-1.2, -0.07]))
HIGH: FloatArray = locked(np.array([0.6, 0.07]))
GOAL = 0.5
"""A car at or beyond this position is at the goal."""


class MountainCar(Domain):
    """Drive a car out of a valley with an engine too weak for the slope.

    With an action a ∈ {−1, 0, 1}, v ← v + force · a − gravity · cos 3x, clipped; x ← x + v, clipped; the left wall
    stops the car. The reward is −1 for every step, the last one included. A step terminates if it reaches the goal,
    x >= 0.5, *or begins there*: a start beyond the goal is a one-step episode, even if the car was rolling out of it.
    Random starts are uniform over the box, or over a part of it.

    Gymnasium's MountainCar-v0 is ``MountainCar(goal_velocity=0.0, start_low=(-0.6, 0.0), start_high=(-0.4, 0.0))``, but
    for its limit of 200 steps; its actions are 0, 1, 2 instead of −1, 0, 1.

    Parameters
    ----------
    force, gravity : float > 0
    goal : float
        A car at or beyond this position is at the goal.
    goal_velocity : float, optional
        If given, a step terminates if it ends at the goal with at least this velocity; where it began does not
        matter (Gymnasium's rule).
    low, high : (2,)
        Least and largest position and velocity.
    start_low, start_high : (2,), optional
        Corners of the part of the box in which episodes start; the whole box if left out.

    References
    ----------
    R. S. Sutton, A. G. Barto, "Reinforcement Learning", 2nd edition, example 10.1; clipping, goal and rewards as in the
    older code of the paper's first author [G]; γ = 0.99 [P].

    Example
    -------
    >>> car = MountainCar()
    >>> step = car.step([[-0.5, 0.0], [0.45, 0.07]], [1, 1])
    >>> step.states.round(5)
    array([[-0.49918, 0.00082],
           [ 0.52 , 0.07 ]])
    >>> step.rewards, step.terminated
    (array([-1., -1.]), array([False, True]))
    """

    name = "MountainCar"
    state_names = ("position", "velocity")
    gamma = 0.99
    start_noise_size = 2

    def __init__(
        self,
        *,
        force: float = 0.001,
        gravity: float = 0.0025,
        goal: float = GOAL,
        goal_velocity: float | None = None,
        low: ArrayLike = LOW,
        high: ArrayLike = HIGH,
        start_low: ArrayLike | None = None,
        start_high: ArrayLike | None = None,
    ) -> None:
        self.force = parameters.positive("force", force)
        self.gravity = parameters.positive("gravity", gravity)
        self.low, self.high = (
            locked(as_real(corner, name, InvalidParameterError).copy())
            for corner, name in ((low, "low"), (high, "high"))
        )
        if self.low.shape != (2,) or self.high.shape != (2,) or not np.isfinite([self.low, self.high]).all():
            raise InvalidParameterError(f"low is {low!r} and high is {high!r}: pass finite position and velocity")
        if not (self.low < self.high).all():
            raise InvalidParameterError(f"low is {low!r} and high is {high!r}: low must be below high")
        self.start_low = self._corner("start_low", start_low, self.low)
        self.start_high = self._corner("start_high", start_high, self.high)
        if not (self.start_low <= self.start_high).all():
            raise InvalidParameterError(
                f"start_low is {start_low!r} and start_high is {start_high!r}: start_low must not be above start_high"
            )
        left, right, fastest = float(self.low[0]), float(self.high[0]), float(self.high[1])
        self.goal = parameters.real("goal", goal, low=left, high=right, open_low=True)
        self.goal_velocity = goal_velocity
        if goal_velocity is not None:
            why = ": no car is faster"
            self.goal_velocity = parameters.real("goal_velocity", goal_velocity, high=fastest, why=why)
        self.reward_bound = 1.0
        self.actions = locked(np.array([-1.0, 0.0, 1.0]))
        self.action_bounds = (-1.0, 1.0)

    def _corner(self, name: str, corner: ArrayLike | None, default: FloatArray) -> FloatArray:
        """The corner as an array, if it lies in the box."""
        given = as_real(default if corner is None else corner, name, InvalidParameterError).copy()
        if given.shape != (2,) or not ((self.low <= given) & (given <= self.high)).all():
            box = f"{self.low.tolist()} to {self.high.tolist()}"
            raise InvalidParameterError(f"{name} is {corner!r}: pass a position and a velocity within {box}")
        return locked(given)

    def policy(self) -> Deterministic:
        """Energy pumping: push the way the car rolls, +1 if v >= 0, else −1 [G].

        Example
        -------
        >>> MountainCar().policy().function(np.array([[-0.5, 0.01], [-0.5, 0.0], [-0.5, -0.01]]))
        array([ 1,  1, -1])
        """
        return Deterministic(energy_pumping)

    def grid(self, n: int = 20) -> FloatArray:
        """Midpoints of ``n`` × ``n`` equal cells of the states before the goal; shape (n², 2), velocity runs fastest.

        The states for which the paper compares values ("a uniform 20x20 grid of the state-space"). Which points it took
        is not printed; this is our choice [OC]: midpoints keep clear of edges, where rounding decides, and of states
        beyond the goal, whose value is −1 by convention.

        Example
        -------
        >>> car = MountainCar()
        >>> car.grid().shape
        (400, 2)
        >>> car.grid(2)
        array([[-0.775, -0.035],
               [-0.775,  0.035],
               [ 0.075, -0.035],
               [ 0.075,  0.035]])
        """
        parameters.integer("n", n)
        middle = (np.arange(n) + 0.5) / n
        position = self.low[0] + (self.goal - self.low[0]) * middle
        velocity = self.low[1] + (self.high[1] - self.low[1]) * middle
        return np.column_stack([np.repeat(position, n), np.tile(velocity, n)])

    def draw(self, state: FloatArray) -> Picture:
        """Draw the hill sin 3x, the car with its velocity as an arrow, and the flag at the goal.

        Example
        -------
        >>> MountainCar().draw(np.array([-0.5, 0.02])).shape
        (380, 600, 3)
        """
        with needs("matplotlib"):
            from matplotlib.patches import Circle, Polygon

        x, v = self.check_states([state])[0].tolist()
        left, right = float(self.low[0]), float(self.high[0])
        unit = (right - left) / 1.8  # all sizes are those of the usual box, scaled
        scale = 0.35 * unit
        figure, axes = canvas(600, 380)
        edges = (left - 0.2 * unit, right + 0.2 * unit)
        axes.set(xlim=edges, ylim=(-1.45 * scale, 2.35 * scale), aspect="equal")
        axes.set_axis_off()

        ground = np.linspace(*edges, 400)
        surface = scale * np.sin(3.0 * ground)
        axes.fill_between(ground, surface, -1.45 * scale, color="#dfe7d8", linewidth=0)
        axes.plot(ground, surface, color="#6b7f5a", linewidth=2)
        wall = ground < left - 0.08 * unit  # where the front of the car stops
        axes.fill_between(ground[wall], surface[wall], surface[wall].max() + 0.2 * unit, color="#9a8f86", linewidth=0)

        foot = scale * math.sin(3.0 * self.goal)
        axes.plot([self.goal, self.goal], [foot, foot + 0.26 * unit], color="#333333", linewidth=2)
        cloth = np.array([[0.0, 0.26], [0.13, 0.215], [0.0, 0.17]]) * unit + [self.goal, foot]
        axes.add_patch(Polygon(cloth, facecolor="#c44e52", edgecolor="#8f3438"))

        slope = math.atan(3.0 * scale * math.cos(3.0 * x))
        along, up = np.array([math.cos(slope), math.sin(slope)]), np.array([-math.sin(slope), math.cos(slope)])
        here = np.array([x, scale * math.sin(3.0 * x)])
        shape = np.array([[-9, 2.2], [-9, 5.4], [-5.4, 5.8], [-3.4, 9], [3.4, 9], [5.6, 5.8], [9, 5.2], [9, 2.2]])
        body = here + (shape * unit / 100) @ np.array([along, up])
        axes.add_patch(
            Polygon(body, facecolor="#4c72b0", edgecolor="#2f4a78", linewidth=1.5, joinstyle="round", zorder=3)
        )
        for side in (-5.2, 5.2):
            hub = here + (side * along + 2.4 * up) * unit / 100
            axes.add_patch(Circle(tuple(hub), 0.024 * unit, facecolor="#222222", zorder=4))
            axes.add_patch(Circle(tuple(hub), 0.009 * unit, facecolor="#cccccc", zorder=5))
        length = 0.28 * unit * v / max(abs(float(self.low[1])), abs(float(self.high[1])))
        if abs(length) > 0.005 * unit:
            tail = here + 0.125 * unit * up
            look = {"arrowstyle": "-|>", "mutation_scale": 15, "color": "#dd8452", "linewidth": 2.5, "shrinkA": 0}
            axes.annotate("", xy=tail + length * along, xytext=tail, arrowprops=look, annotation_clip=False)
        said = f"x = {x:+.3f}   v = {v:+.4f}".replace("-", "−")
        axes.text(
            0.5, 0.94, said, transform=axes.transAxes, ha="center", fontsize=11, color="#333333", family="monospace"
        )
        return pixels(figure)

    def _step(self, states: FloatArray, actions: FloatArray, noise: FloatArray) -> Step:
        x, v = states.T
        v_next = np.clip(v + (self.force * actions - self.gravity * np.cos(3.0 * x)), self.low[1], self.high[1])
        x_next = np.clip(x + v_next, self.low[0], self.high[0])
        v_next = np.where((x_next <= self.low[0]) & (v_next < 0.0), 0.0, v_next)
        if self.goal_velocity is None:
            terminated = (x >= self.goal) | (x_next >= self.goal)
        else:
            terminated = (x_next >= self.goal) & (v_next >= self.goal_velocity)
        return Step(np.column_stack([x_next, v_next]), np.full(len(states), -1.0), terminated)

    def _start(self, noise: FloatArray) -> FloatArray:
        return self.start_low + (self.start_high - self.start_low) * noise


def energy_pumping(states: FloatArray) -> NDArray[np.int64]:
    """Push the way the car rolls: +1 if v >= 0, else −1. States (N, 2) to actions (N,).

    Example
    -------
    >>> energy_pumping(np.array([[-0.5, 0.01], [-0.5, 0.0], [-0.5, -0.01]]))
    array([ 1,  1, -1])
    """
    return np.where(states[:, 1] >= 0.0, 1, -1)
