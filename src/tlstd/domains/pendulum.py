"""Pendulum swing-up: dynamics, and a policy that pumps energy and then balances."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, locked
from tlstd.core.extras import needs
from tlstd.domains.base import Domain, Picture, Step
from tlstd.domains.pictures import canvas, pixels
from tlstd.domains.policies import Deterministic

PUMP_GAIN = 20.0
"""How hard energy is pumped, for each unit of energy and velocity [G]."""
STATE_COST, TORQUE_COST = 50.0, 1.0
"""Weights of the regulator: Q = 50 I, R = 1 [G]."""
BALANCE_LEVEL = 30.0
"""The regulator takes over where q̄ᵀSq̄ is below this [G]."""


class Regulator(NamedTuple):
    """The linear-quadratic regulator about the upright position: u = −K q̄ at the cost q̄ᵀSq̄."""

    K: FloatArray
    """(2,)"""
    S: FloatArray
    """(2, 2)"""


class Pendulum(Domain):
    """Swing a pendulum up with a motor too weak to lift it, and hold it there for a second.

    The angle θ is 0 hanging down and ±π upright, kept in [−π, π). With torque u, held for a control step of 5
    integration steps Δt = 0.01 s,

        ω ← ω + Δt (u − damping · ω − m g l sin θ) / (m l²), clipped to ±3π;    θ ← θ + Δt ω    (semi-implicit Euler),

    and the reward is the sum of −cos θ over the 5 angles reached: from −5 hanging to 5 upright. An episode terminates
    when 20 successive control steps (1 s) have ended within π/8 of upright. Because that depends on the past, a state
    has a third entry that features do not see, ``held``, the number of such steps so far; random starts have ω = 0
    and held = 0, and θ uniform. After 200 control steps (10 s) an episode is truncated (``episode_cap``): that is no
    part of the dynamics, so true values ignore it.

    Parameters
    ----------
    mass, length, gravity : float > 0
    damping : float >= 0
    max_torque, max_speed : float > 0
        Bounds of |u| and |ω|.
    time_step : float > 0
        Δt in seconds.
    substeps : int >= 1
        Integration steps per control step.
    upright : float in (0, π]
        How far from upright still counts as upright.
    hold_time, time_limit : float > 0
        Seconds upright after which an episode terminates, and seconds after which it is truncated; ``math.inf`` for
        never.

    Notes
    -----
    Constants, integration and policy are those of the older code of the paper's first author [G]. Our choices [OC]:
    the reward of an integration step is that of the angle it leads to, not of the one it starts from; whether the
    pendulum is up is looked at once per control step, at its end; and the limit of 10 s is a truncation.

    Example
    -------
    >>> pendulum = Pendulum()
    >>> step = pendulum.step([[0.0, 0.0, 0.0], [3.1, 0.0, 19.0]], [2.0, 0.0])
    >>> step.states.round(3).tolist()
    [[0.003, 0.099, 0.0], [3.099, -0.02, 20.0]]
    >>> step.rewards.round(3), step.terminated
    (array([-5. , 4.996]), array([False, True]))
    """

    name = "Pendulum"
    state_names = ("angle", "velocity", "held")
    gamma = 0.99
    start_noise_size = 1

    def __init__(
        self,
        *,
        mass: float = 1.0,
        length: float = 1.0,
        gravity: float = 9.8,
        damping: float = 0.2,
        max_torque: float = 2.0,
        max_speed: float = 3.0 * math.pi,
        time_step: float = 0.01,
        substeps: int = 5,
        upright: float = math.pi / 8.0,
        hold_time: float = 1.0,
        time_limit: float = 10.0,
    ) -> None:
        self.mass = parameters.positive("mass", mass)
        self.length = parameters.positive("length", length)
        self.gravity = parameters.positive("gravity", gravity)
        self.damping = parameters.real("damping", damping, low=0.0, open_high=True)
        self.max_torque = parameters.positive("max_torque", max_torque)
        self.max_speed = parameters.positive("max_speed", max_speed)
        self.time_step = parameters.positive("time_step", time_step)
        self.substeps = parameters.integer("substeps", substeps)
        self.upright = parameters.real("upright", upright, low=0.0, high=math.pi, open_low=True, why=", up to π")
        self.hold_steps = self._steps_of(hold_time, "hold_time")
        """Successive upright control steps that end an episode; None for never."""
        self.low = locked(np.array([-math.pi, -self.max_speed]))
        self.high = locked(np.array([math.pi, self.max_speed]))
        self.reward_bound = float(self.substeps)
        self.action_bounds = (-self.max_torque, self.max_torque)
        self.episode_cap = self._steps_of(time_limit, "time_limit")

    def policy(self) -> Deterministic:
        """Energy pumping, and near upright a linear-quadratic regulator, both clipped to the possible torque [G].

        With E = ½ m l² ω² − m g l cos θ, the torque is −20 ω (E − m g l): it drives the energy to that of standing
        upright. Where q̄ᵀSq̄ < 30, q̄ = (θ mod 2π − π, ω), it is −K q̄ (:meth:`regulator`). Exactly at rest
        hanging down, pumping would give 0 for ever; there the policy pushes with ``max_torque`` [OC]. That is one
        point, but one on every grid of odd size; next to it pumping is about as strong.

        A torque of 2 cannot hold the pendulum more than 0.2 rad off upright, which is less than π/8: in some episodes
        it would fall once more after that first second, if they went on. How long episodes are: ``docs/domains.md``.

        Example
        -------
        >>> policy = Pendulum().policy()
        >>> policy.function(np.array([[0.5, 0.1, 0.0], [0.5, -0.1, 0.0], [3.1, 0.0, 0.0], [0.0, 0.0, 0.0]])).round(3)
        array([ 2. , -2. , 0.91, 2. ])
        """
        return Deterministic(partial(self._swing_up, self.regulator()))

    def regulator(self) -> Regulator:
        """Solve the Riccati equation of the upright position, linearised, with Q = 50 I and R = 1 [G].

        Example
        -------
        >>> Pendulum().regulator().K.round(3)
        array([21.885, 9.486])
        """
        from scipy.linalg import solve_continuous_are

        inertia = self.mass * self.length**2
        A = np.array([[0.0, 1.0], [self.gravity / self.length, -self.damping / inertia]])
        B = np.array([[0.0], [1.0 / inertia]])
        S: FloatArray = solve_continuous_are(A, B, STATE_COST * np.eye(2), TORQUE_COST * np.eye(1))
        return Regulator(B[:, 0] @ S / TORQUE_COST, S)

    def energy(self, states: FloatArray) -> FloatArray:
        """Kinetic and potential energy (N,): ½ m l² ω² − m g l cos θ.

        Example
        -------
        >>> Pendulum().energy(np.array([[0.0, 2.0, 0.0]]))      # 2 − 9.8
        array([-7.8])
        """
        kinetic = 0.5 * self.mass * self.length**2 * states[:, 1] ** 2
        total: FloatArray = kinetic - self.mass * self.gravity * self.length * np.cos(states[:, 0])
        return total

    def grid(self, n: int = 20) -> FloatArray:
        """Midpoints of ``n`` × ``n`` equal cells of the box, with held = 0; shape (n², 3), velocity runs fastest.

        Where values are compared. Which points the paper took is not printed; midpoints are our choice [OC].

        Example
        -------
        >>> Pendulum().grid(2).round(3)
        array([[-1.571, -4.712, 0. ],
               [-1.571,  4.712, 0. ],
               [ 1.571, -4.712, 0. ],
               [ 1.571,  4.712, 0. ]])
        """
        parameters.integer("n", n)
        middle = (np.arange(n) + 0.5) / n
        angle, velocity = (self.low + (self.high - self.low) * middle[:, np.newaxis]).T
        return np.column_stack([np.repeat(angle, n), np.tile(velocity, n), np.zeros(n * n)])

    def draw(self, state: FloatArray) -> Picture:
        """Draw the pendulum, the range that counts as upright and how long it has been held (ring), and its motion.

        Example
        -------
        >>> Pendulum().draw(np.array([2.0, 1.0, 0.0])).shape
        (400, 400, 3)
        """
        with needs("matplotlib"):
            from matplotlib.patches import Circle, Wedge

        angle, velocity, held = self.check_states([state])[0].tolist()
        figure, axes = canvas(400, 400)
        axes.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), aspect="equal")
        axes.set_axis_off()
        half = math.degrees(self.upright)
        axes.add_patch(Wedge((0, 0), 1.28, 90 - half, 90 + half, facecolor="#e3f1e4", edgecolor="none"))
        axes.add_patch(Circle((0, 0), 1.0, fill=False, edgecolor="#d0d0d0", linewidth=1.0, linestyle=(0, (2, 4))))
        if self.hold_steps is not None and held > 0:
            swept = 2.0 * half * min(held / self.hold_steps, 1.0)
            axes.add_patch(Wedge((0, 0), 1.28, 90 + half - swept, 90 + half, width=0.05, facecolor="#3a8f47"))
        bob = np.array([math.sin(angle), -math.cos(angle)])
        axes.plot([0, bob[0]], [0, bob[1]], color="#4a4a4a", linewidth=7, solid_capstyle="round", zorder=3)
        axes.add_patch(Circle((0, 0), 0.06, facecolor="#222222", zorder=4))
        axes.add_patch(Circle(tuple(bob), 0.15, facecolor="#c44e52", edgecolor="#8f3438", linewidth=1.5, zorder=4))
        swing = 2.0 * velocity / self.max_speed  # radians of the arrow, which lies outside the bob's circle
        if abs(swing) > 0.02:
            arc = angle + np.linspace(0.0, swing, 50)
            axes.plot(1.38 * np.sin(arc), -1.38 * np.cos(arc), color="#4c72b0", linewidth=2.5)
            tip = 1.38 * np.array([math.sin(arc[-1]), -math.cos(arc[-1])])
            ahead = tip + math.copysign(0.1, swing) * np.array([math.cos(arc[-1]), math.sin(arc[-1])])
            head = {"arrowstyle": "-|>", "mutation_scale": 16, "color": "#4c72b0", "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", xy=ahead, xytext=tip, arrowprops=head)
        said = f"θ = {angle:+.2f}   ω = {velocity:+.2f}   held {held:2.0f}".replace("-", "−")
        axes.text(0.0, -1.56, said, ha="center", fontsize=10, color="#333333", family="monospace")
        return pixels(figure)

    def _step(self, states: FloatArray, actions: FloatArray, noise: FloatArray) -> Step:
        angle, velocity, held = states.T
        inertia = self.mass * self.length**2
        pull = self.mass * self.gravity * self.length
        rewards = np.zeros(len(states))
        for _ in range(self.substeps):
            acceleration = (actions - self.damping * velocity - pull * np.sin(angle)) / inertia
            velocity = np.clip(velocity + self.time_step * acceleration, -self.max_speed, self.max_speed)
            angle = angle + self.time_step * velocity
            rewards -= np.cos(angle)
        angle = _wrapped(angle)
        held = np.where(np.abs(angle) >= math.pi - self.upright, held + 1.0, 0.0)
        terminated = held >= (math.inf if self.hold_steps is None else self.hold_steps)
        return Step(np.column_stack([angle, velocity, held]), rewards, terminated)

    def _swing_up(self, regulator: Regulator, states: FloatArray) -> FloatArray:
        """The torque of :meth:`policy`."""
        angle, velocity = states[:, 0], states[:, 1]
        off = np.mod(angle, 2.0 * math.pi) - math.pi
        (k1, k2), ((s11, s12), (_, s22)) = regulator.K.tolist(), regulator.S.tolist()
        # entry by entry: a matrix product may round differently with the number of states
        near = s11 * off**2 + 2.0 * s12 * off * velocity + s22 * velocity**2 < BALANCE_LEVEL
        pump = -PUMP_GAIN * velocity * (self.energy(states) - self.mass * self.gravity * self.length)
        pump[(angle == 0.0) & (velocity == 0.0)] = self.max_torque
        torque: FloatArray = np.where(near, -(k1 * off + k2 * velocity), pump)
        return np.clip(torque, -self.max_torque, self.max_torque)

    def _start(self, noise: FloatArray) -> FloatArray:
        starts = np.zeros((len(noise), 3))
        starts[:, 0] = math.pi * (2.0 * noise[:, 0] - 1.0)
        return starts

    def _steps_of(self, seconds: float, name: str) -> int | None:
        duration = parameters.real(name, seconds, low=0.0, open_low=True, why=", in seconds; math.inf for never")
        steps = duration / (self.substeps * self.time_step)
        return None if math.isinf(steps) else max(1, math.ceil(steps - 1e-9))


def _wrapped(angle: FloatArray) -> FloatArray:
    """Angles in [−π, π); those already there do not change by a bit."""
    turned = angle - 2.0 * math.pi * np.floor((angle + math.pi) / (2.0 * math.pi))
    return np.where((turned >= -math.pi) & (turned < math.pi), turned, -math.pi)  # rounding may end on π itself
