# %% [markdown]
# # From a log to an answer
#
# Somebody drove a car for a while, and all that is left is a table of steps. What is the driver worth, in every state?
# And what would another driver be worth, who has never driven? Everything on this page was run by
#
#     uv run python docs/tutorials/build.py from_a_log
#
# and takes less than a minute. The script itself is `docs/tutorials/from_a_log.py`. How to do it with your own log,
# with all options: [evaluate a log](../logs.md#evaluate-a-log).
#
# ## A log
#
# The car of [t-LSTD in ten minutes](ten_minutes.md), driven by a careless driver: the right pedal (the one that
# accelerates the way the car rolls) seven times in ten, and otherwise any of the three pedals. Every step costs −1
# until the car is over the hill; drives end after 200 steps in any case. Each row of the file is one step.

# %%
import numpy as np
import polars as pl

from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.policies import EpsilonGreedy
from tlstd.streams import trajectory

car = MountainCar()
careless = EpsilonGreedy(car.policy(), car.actions, epsilon=0.3)
path = trajectory(car, careless, n_steps=8_000, seed=0, episode_cap=200)
ends = path.terminated | path.truncated
table = pl.DataFrame(
    {
        "episode": np.cumsum(ends) - ends,
        "obs_0": path.states[path.rows, 0],
        "obs_1": path.states[path.rows, 1],
        "action": path.actions.astype(int) + 1,  # pedals −1, 0, 1 as numbers 0, 1, 2
        "reward": path.rewards,
        "next_obs_0": path.states[path.rows + 1, 0],
        "next_obs_1": path.states[path.rows + 1, 1],
        "terminated": path.terminated,
        "truncated": path.truncated,
    }
)
table.write_parquet("drives.parquet")
print(table.head(3).select("episode", "obs_0", "obs_1", "action", "reward", "terminated"))

# %% [markdown]
# ## What the driver is worth
#
# One line. (On the command line: `tlstd evaluate drives.parquet --gamma 0.99`.) The value is that of the states in
# which drives begin, on average. The answer is the mean of the drives' returns. The last drive was cut off by the end
# of the log, and a model of the other drives adds what lies behind the cut. The model stands beside the answer. Its λ
# and dimension were chosen by held-out parts of the log.

# %%
import tlstd

report = tlstd.evaluate("drives.parquet", gamma=0.99)
for row in report.rows:
    print(f"{row.name:18} {row.interval}   {row.note}")
print(f"\n{report.rung}: {report.assumption}\n{report.trust}\n")
print(*report.notes, sep="\n")

# %% [markdown]
# Is it right? Here, and only here, the driver can be asked to drive again, 50 times from each start of the log.

# %%
from tlstd.evaluation import rollout_values

starts = table.group_by("episode", maintain_order=True).first().select("obs_0", "obs_1").to_numpy()
again = rollout_values(car, starts, n_rollouts=50, rng=np.random.default_rng(1), policy=careless)
print(f"{50 * len(starts):,} new drives: {again.mean.mean():.2f}, the log's answer: {report.value:.2f}")

# %% [markdown]
# ## Any state
#
# The model behind the answer says the value of every state. States that the log never visits are guesses.

# %%
import matplotlib.pyplot as plt

states = car.grid()
truth = rollout_values(car, states, n_rollouts=50, rng=np.random.default_rng(2), policy=careless).mean
found = report.predict(states)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", num="values of new drives, and from the log")
for axis, values, title in zip(axes, (truth, found), ("new drives", "from the log"), strict=True):
    box = [car.low[0], car.goal, car.low[1], car.high[1]]
    image = axis.imshow(values.reshape(20, 20).T, origin="lower", extent=box, aspect="auto", vmin=-95, vmax=0)
    axis.set(title=title, xlabel="position", ylabel="velocity")
figure.colorbar(image, ax=axes)
plt.show()
print(f"error over the whole grid: {np.sqrt(np.mean((found - truth) ** 2)):.1f}")

# %% [markdown]
# ## A driver who has never driven
#
# The careful driver always takes the right pedal. The log has no probabilities of the careless one's choices, and none
# are needed: *action values* say what each pedal is worth if the careful driver takes over afterwards. Nothing in the
# log can test whether the features suffice for that, so that the light is "unchecked" at best.


# %%
def careful(seen):
    """Push the way the car rolls: pedal 2 forwards, 0 backwards."""
    return np.where(seen[:, 1] >= 0, 2, 0)


other = tlstd.evaluate("drives.parquet", gamma=0.99, policy=careful)
from tlstd.evaluation import true_values

print(f"{other.rung}: {other.interval()}, the truth: {true_values(car, starts).mean():.2f}")
print(other.trust)

# %% [markdown]
# ## Keep it
#
# `save` writes model and features into one file, for `tlstd predict` and `tlstd inspect`; new logs can be added.

# %%
from tlstd.evaluation import ValueFunction

report.save("careless_driver")
values = ValueFunction.load("careless_driver")
print(values.predict([[-0.5, 0.0], [0.4, 0.05]]).round(1))
