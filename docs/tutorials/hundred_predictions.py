# %% [markdown]
# # A hundred predictions from one stream
#
# A robot drives around in a room. It has twenty signals, and for each of them it wants to know at every step how much
# of it is to come: at the next step, within about two, five, twenty, a hundred steps. These are a hundred *general
# value functions* of five discounts, all learned from one stream while it runs. Everything on this page was run by
#
#     uv run python docs/tutorials/build.py hundred_predictions
#
# and takes some seconds. The script itself is `docs/tutorials/hundred_predictions.py`; what it costs, and more kinds of
# questions: [many predictions](../many_predictions.md).
#
# ## The robot
#
# It drives forward, wanders a little, and when a wall is near it turns for a few steps; if it still is, it bumps. Its
# signals are light on its four sides (there is a lamp in one corner), the distance to the wall in eight directions,
# bumps, the currents of two motors, and whether it is in one of five zones.

# %%
import numpy as np

rng = np.random.default_rng(0)
LAMP, ZONES = np.array([3.5, 3.5]), np.array([[0.5, 0.5], [2.0, 2.0], [3.5, 0.5], [0.5, 3.5], [3.5, 3.5]])
NAMES = (
    [f"light {side}" for side in ("front", "left", "back", "right")]
    + [f"distance {45 * i}°" for i in range(8)]
    + ["bump", "current left", "current right"]
    + [f"zone {i + 1}" for i in range(5)]
)


def wall_ahead(x, y, angle):
    """Distance to the wall of the room, 4 m by 4 m."""
    c, s = np.cos(angle), np.sin(angle)
    return min((4.0 - x if c > 0 else x) / max(abs(c), 1e-9), (4.0 - y if s > 0 else y) / max(abs(s), 1e-9))


def drive(n_steps):
    """Poses (n_steps + 1, 3): x, y and heading; and the signals of each step, (n_steps, 20)."""
    x, y, heading, side, left_to_turn = 1.0, 1.0, 0.5, 0.5, 0
    poses, signals = [(x, y, heading)], []
    for _ in range(n_steps):
        if not left_to_turn and wall_ahead(x, y, heading) < 0.5:
            side, left_to_turn = rng.choice([-0.5, 0.5]), rng.integers(3, 7)
        turn = side * (left_to_turn > 0) + 0.05 * rng.standard_normal()
        speed = 0.05 if left_to_turn else 0.15
        left_to_turn = max(0, left_to_turn - 1)
        heading = (heading + turn) % (2 * np.pi)
        new_x, new_y = x + speed * np.cos(heading), y + speed * np.sin(heading)
        bump = not (0.1 <= new_x <= 3.9 and 0.1 <= new_y <= 3.9)
        x, y = np.clip([new_x, new_y], 0.1, 3.9)
        to_lamp = np.arctan2(LAMP[1] - y, LAMP[0] - x) - heading
        light = np.maximum(0.0, np.cos(to_lamp - np.arange(4) * np.pi / 2)) / (0.5 + np.hypot(LAMP[0] - x, LAMP[1] - y))
        walls = [wall_ahead(x, y, heading + i * np.pi / 4) for i in range(8)]
        current = [speed + 0.3 * abs(turn) + 0.5 * bump + 0.02 * rng.standard_normal() for _ in range(2)]
        poses.append((x, y, heading))
        signals.append([*light, *walls, bump, *current, *(np.hypot(*(ZONES - [x, y]).T) < 0.7)])
    return np.array(poses), np.array(signals, dtype=float)


poses, signals = drive(8_000)
print(f"{len(signals):,} steps, {signals[:, NAMES.index('bump')].sum():.0f} bumps")

# %% [markdown]
# ## The questions
#
# A question says what is summed up and how far ahead. Here the cumulants are columns of the stream, by name; a function
# of the steps would do as well. The horde encodes every pose once and keeps one model for each discount, with twenty
# targets: the equations of a discount are the same for all signals.

# %%
from tlstd import Horde, Question, Steps, TileCoder, TrueOnlineTD

discounts = (0.0, 0.5, 0.8, 0.95, 0.99)
questions = [Question(name, discount=gamma, name=f"{name}, {gamma}") for gamma in discounts for name in NAMES]
features = TileCoder([0, 0, 0], [4, 4, 2 * np.pi], tiles=(8, 8, 9), tilings=8, bias=True)
horde = Horde(features, questions, TrueOnlineTD(features.n_features, step_size=0.02, lambda_=0.8))
print(horde, f"with {features.n_features:,} features")

# %% [markdown]
# ## Learning while it drives, and stopping for the night
#
# At every step all hundred predictions are read, right after the step was learned. In a program of your own that is
# `horde.update(pose, next_pose, columns={...})` and `horde.predict(next_pose)`; for a recording it is one call. Half
# way the robot is switched off, and the horde goes to a file; the one that is read back continues as if nothing had
# happened, to the bit.

# %%
stream = Steps.along(poses, columns=dict(zip(NAMES, signals.T, strict=True)))
first_half = horde.update_and_predict(stream[:4_000])
horde.save("horde.tlstd")

morning = Horde.load("horde.tlstd")
second_half = morning.update_and_predict(stream[4_000:])
print("the same as if it had never stopped:", np.array_equal(horde.update_and_predict(stream[4_000:]), second_half))
predicted = np.concatenate([first_half, second_half])
print(predicted.shape)

# %% [markdown]
# ## Against what came
#
# What a prediction was about is known some time later: the discounted sum of what came. A sum that is not complete when
# the recording ends is left out.

# %%
import matplotlib.pyplot as plt


def what_came(signal, gamma):
    """Σ_k γ^k c_{t+2+k} after each step t: what the prediction at its next pose was about."""
    total = np.zeros(len(signal) + 1)
    for t in range(len(signal) - 1, -1, -1):
        total[t] = signal[t] + gamma * total[t + 1]
    return total[1:]


came = np.stack([what_came(signals[:, i], gamma) for gamma in discounts for i in range(20)], axis=1)
window = slice(7_000, 7_300)
figure, axes = plt.subplots(3, 1, figsize=(9, 6), layout="constrained", sharex=True, num="Predictions and what came")
for axis, (name, gamma) in zip(axes, (("light front", 0.8), ("bump", 0.8), ("zone 5", 0.95)), strict=True):
    column = discounts.index(gamma) * 20 + NAMES.index(name)
    axis.plot(np.arange(7_000, 7_300), came[window, column], color="black", linewidth=0.8, label="what came")
    axis.plot(np.arange(7_000, 7_300), predicted[window, column], color="tab:orange", label="predicted")
    axis.set(title=f"{name}, discount {gamma}")
axes[0].legend()
axes[-1].set(xlabel="step")
plt.show()

# %% [markdown]
# All hundred, by the share of the variance of what came that was *not* predicted, over steps 5,000 to 7,500; 1 is what
# the mean would leave. At short horizons it is about a tenth to a fifth of zones and light, and half of bumps and
# currents, which depend on noise and on the turn in progress: the pose does not show either. Of a sum over a hundred
# steps one pose says next to nothing, and a prediction that follows noise is worse than the mean.
#
# The robot could also spend the night on the recording. A horde of [Krylov LSTD](../krylov.md), with the same
# questions, solves for all weights at once; it has no step size. Here it learns from the first 5,000 steps only, so
# that it too is judged on steps that it had not seen.

# %%
from tlstd import KrylovLSTD

judged = slice(5_000, 7_500)
at_night = Horde(features, questions, KrylovLSTD(features.n_features, lambda_=0.8, dimension=15))
at_night.update_many(stream[:5_000])
offline = at_night.predict(poses[1:][judged])


def unexplained(values):
    """(20 signals, 5 discounts): share of the variance."""
    return (((values - came[judged]) ** 2).mean(axis=0) / came[judged].var(axis=0)).reshape(5, 20).T


figure, axes = plt.subplots(1, 2, figsize=(8, 6), layout="constrained", sharey=True, num="Share not predicted")
for axis, (title, values) in zip(axes, (("as it drove", predicted[judged]), ("at night", offline)), strict=True):
    image = axis.imshow(unexplained(values), vmin=0.0, vmax=1.0, aspect="auto", cmap="viridis")
    axis.set(title=title, xticks=range(5), xticklabels=discounts, xlabel="discount")
axes[0].set(yticks=range(20), yticklabels=NAMES)
figure.colorbar(image, ax=axes)
plt.show()

for name in ("light front", "distance 0°", "bump", "zone 5"):
    row = NAMES.index(name)
    live, night = (unexplained(values)[row] for values in (predicted[judged], offline))
    print(f"{name:12} as it drove {live.round(2)}   at night {night.round(2)}")

# %% [markdown]
# ## Where next
#
# - [Many predictions](../many_predictions.md): terminations, policies, successor features, and what all of it costs
# - [Which estimator when](../which_estimator.md)
# - [Save and resume](../state.md#save-a-model-and-go-on-later)
