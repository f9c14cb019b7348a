# %% [markdown]
# # t-LSTD in ten minutes
#
# From a stream of experience to a value function: what is estimated, what TD, LSTD and t-LSTD do with the same 4,000
# steps, what the rank does, and how to read and save the result. Everything on this page was run by
#
#     uv run python docs/tutorials/build.py ten_minutes
#
# and takes a few seconds. The script itself is `docs/tutorials/ten_minutes.py`.
#
# ## A value function
#
# A car stands in a valley, and its engine is too weak for the slope: it has to swing. A *policy* drives it: push the
# way the car rolls. Every step costs −1 until the car is over the hill, and a step that lies n steps ahead counts γⁿ
# of that, with γ = 0.99. The *value* of a state is the sum that is to be expected from there: about −1 next to the
# goal, about −80 where two more swings are needed.
#
# Here nothing is random, so that the true values are known by simply driving on from each state. That is what
# estimates will be compared with; an estimator never sees it.

# %%
import matplotlib.pyplot as plt
import numpy as np

from tlstd.domains.mountain_car import MountainCar
from tlstd.evaluation import true_values

car = MountainCar()
states = car.grid()  # 20 x 20 test states: position and velocity
truth = true_values(car, states)
print(f"{len(states)} states with values from {truth.min():.1f} to {truth.max():.1f}")
print(f"always predicting 0 has the error {np.sqrt(np.mean(truth**2)):.1f}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", num="Mountain Car, true values")
left.imshow(car.draw(np.array([-0.7, 0.03])))
left.set_axis_off()
left.set_title("one state")


def heat_map(axis, values, title):
    """Values of the 20 x 20 states, position to the right and velocity upwards."""
    box = [car.low[0], car.goal, car.low[1], car.high[1]]
    image = axis.imshow(values.reshape(20, 20).T, origin="lower", extent=box, aspect="auto", vmin=-80, vmax=0)
    axis.set(title=title, xlabel="position", ylabel="velocity")
    return image


figure.colorbar(heat_map(right, truth, "true values"), ax=right)
plt.show()

# %% [markdown]
# ## Features
#
# A value is learned as a weighted sum of *features*, v(s) = w·x(s): d numbers that describe a state, and d weights to
# find. Here the features are 16 × 16 bumps over position and velocity (radial basis functions) and a constant.

# %%
from tlstd import RBF

features = RBF(car.low, car.high, grid=16, width=0.12, bias=True)
x = features.encode([-0.5, 0.0])
print(f"{features.n_features} features, of which {np.count_nonzero(x > 0.1)} are above 0.1 at rest in the valley")
X_test = features.encode_many(states)

# %% [markdown]
# ## A stream of experience
#
# An estimator sees *transitions*: features, reward, next features, and whether the episode ended. `record` drives the
# car from random starts and returns them, ready to be learned from. (For your own data: [arrays
# and environments](../data.md).)

# %%
from tlstd.streams import record

steps = record(car, None, features, n_steps=4_000, seed=0)  # None: the domain's own policy
print(steps)
print(f"{np.count_nonzero(steps.discounts == 0)} episodes reached the goal")

# %% [markdown]
# ## Three ways to learn from it
#
# - **TD** moves the weights a little after every step, so that the value of a state comes nearer to the reward plus
#   the value of the next state. It is very cheap, and needs a step size: too small is slow, too large diverges.
# - **LSTD** adds all transitions up into a matrix A and a vector b and solves A w = b. It needs no step size and makes
#   the most of each transition, but A has d² entries.
# - **t-LSTD** does the same with the `rank` largest singular values of A only: 2·d·rank numbers instead of d².
#
# All have the same interface: `update_many` (or `update`, one transition at a time), then `predict`.

# %%
from time import process_time

from tlstd import LSTD, TD, TLSTD

d = features.n_features
marks = [250, 500, 1000, 2000, 4000]


def learning_curve(model):
    """Error on the test states after each number of steps in ``marks``, and the CPU time of learning."""
    errors, seconds, start = [], 0.0, 0
    for stop in marks:
        before = process_time()
        model.update_many(steps[start:stop])
        seconds += process_time() - before
        start = stop
        errors.append(np.sqrt(np.mean((model.predict(X_test) - truth) ** 2)))
    return errors, seconds


models = {
    "TD, step size 0.01": TD(d, step_size=0.01, lambda_=0.9),
    "TD, step size 0.03": TD(d, step_size=0.03, lambda_=0.9),
    "LSTD": LSTD(d, lambda_=0.9),
    "t-LSTD, rank 10": TLSTD(d, rank=10, lambda_=0.9),
    "t-LSTD, rank 30": TLSTD(d, rank=30, lambda_=0.9),
    "t-LSTD, rank 50": TLSTD(d, rank=50, lambda_=0.9),
}
TD(d, step_size=0.01, lambda_=0.9).update_many(steps[:10])  # compiles its loop, which is not to be timed
curves = {}
print(f"{'error after':20}" + "".join(f"{mark:>8,}" for mark in marks) + "   CPU time    memory")
for name, model in models.items():
    curves[name], seconds = learning_curve(model)
    row = "".join(f"{error:8.2f}" for error in curves[name])
    print(f"{name:20}{row}   {seconds:6.3f} s {model.nbytes / 1e6:6.2f} MB")
too_large = TD(d, step_size=0.1, lambda_=0.9)
too_large.update_many(steps)
print(f"TD, step size 0.1: predictions of up to {np.abs(too_large.predict(X_test)).max():.0e}")

# %%
figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained", num="Error against samples for TD, LSTD and t-LSTD")
styles = {"TD": "tab:blue", "LS": "black", "t-": "tab:orange"}
for number, (name, errors) in enumerate(curves.items()):
    axis.plot(marks, errors, marker="os^Dv>"[number], color=styles[name[:2]], label=name)
axis.set(xscale="log", xlabel="samples", ylabel="RMSE", ylim=(0, 30), xticks=marks, xticklabels=marks)
axis.minorticks_off()
axis.legend()
plt.show()

# %% [markdown]
# What to see:
#
# - After 4,000 samples LSTD and t-LSTD of rank 50 are ahead of TD, without a step size. TD diverges with a step size of
#   0.1; to find that out one has to try.
# - Rank 10 is quick, and then stuck: what lies outside the 10 directions that it keeps is never learned. That is the
#   *bias* of truncation.
# - At 500 samples LSTD's error goes *up*, because it believes directions in which it has seen next to nothing. Rank 30
#   does not have them. That is the *variance* that truncation saves.
# - TD's CPU time is a small fraction of the others'. Where samples cost nothing, TD is hard to beat for its price.
# - With 257 features LSTD is also *cheaper* than t-LSTD, and a matrix of 1 MB is no burden: take LSTD then. t-LSTD is
#   for features by the thousands, where d² is what one cannot pay.
#
# It is one stream, so that a few percent mean nothing; [experiments](../experiments.md) has many runs and intervals.
#
# ## What the rank does
#
# A's singular values say how much of it lies in each direction. With these features they fall quickly: a few dozen
# directions hold nearly everything that 4,000 samples can tell. A model that keeps fewer than that loses values, one
# that keeps more has nothing to put there. (Those below `rcond`, a ten-thousandth of the largest, are not used at
# all.)

# %%
from tlstd.diagnostics import effective_rank, spectrum

by_rank = {rank: models[f"t-LSTD, rank {rank}"] for rank in (10, 30, 50)}
for rank in (5, 20, 100, 150):
    by_rank[rank] = TLSTD(d, rank=rank, lambda_=0.9)
    by_rank[rank].update_many(steps)
final = {rank: np.sqrt(np.mean((by_rank[rank].predict(X_test) - truth) ** 2)) for rank in sorted(by_rank)}
sigma = spectrum(by_rank[150])
print(f"of {len(sigma)} singular values {np.count_nonzero(sigma > 1e-4 * sigma[0])} are above the cut-off")
print(f"{effective_rank(sigma)} make up 95% of their sum")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", num="Singular values; error by rank")
left.semilogy(np.arange(1, len(sigma) + 1), sigma / sigma[0], ".", color="tab:orange")
left.axhline(1e-4, color="gray", linestyle="--")
left.set(title="singular values over the largest; dashed: cut-off", xlabel="number")
right.plot(list(final), list(final.values()), "o-", color="tab:orange", label="t-LSTD")
right.axhline(curves["LSTD"][-1], color="black", label="LSTD")
right.set(title="error after 4,000 samples", xlabel="rank", ylim=(0, 30))
right.legend()
plt.show()

# %% [markdown]
# The values themselves, for three ranks: a small rank is smooth where the true values have an edge.

# %%
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", num="Learned values for three ranks")
for axis, rank in zip(axes, (5, 20, 50), strict=True):
    image = heat_map(axis, by_rank[rank].predict(X_test), f"rank {rank}, error {final[rank]:.1f}")
figure.colorbar(image, ax=axes)
plt.show()

# %% [markdown]
# Which rank to take, and what λ has to do with it: [choosing rank and
# λ](../which_estimator.md#choose-the-rank-and-λ). With RBFs a small rank suffices; with tile coding it
# does not, and λ decides whether it works at all.
#
# ## Reading the model
#
# `predict` takes one feature vector or a matrix of them. `weights` are the d numbers; they are solved for when
# they are read, and are up to date after every transition.

# %%
model = TLSTD(d, rank=50, lambda_=0.9)
for transition in steps[:1000]:  # one at a time: the same model as with update_many
    model.update(transition)
value = model.predict(features.encode([-0.5, 0.0]))
print(f"at rest in the valley: {value:.1f}, the truth is {true_values(car, [[-0.5, 0.0]])[0]:.1f}")
print(f"{model.weights.size} weights after {model.n_updates:,} samples, the largest {np.abs(model.weights).max():.0f}")

# %% [markdown]
# ## Saving, and going on
#
# One file holds the model with everything that it needs to go on. A model that was saved and loaded continues as if it
# had never stopped, to the bit.

# %%
import tlstd

model.save("car.tlstd")
again = tlstd.load("car.tlstd")
for each in (model, again):
    each.update_many(steps[1000:])
print(f"equal after 3,000 more samples: {np.array_equal(again.weights, model.weights)}")

# %% [markdown]
# `uv run tlstd inspect car.tlstd` says what is in the file, draws the singular values and gives advice on the rank.
#
# ## Where next
#
# - [Which estimator when](../which_estimator.md), a table
# - [Ten million steps](ten_million_steps.md), on a laptop and on Dask
# - [Concepts](../concepts.md): traces, λ, the buffer, tracking, with pictures
