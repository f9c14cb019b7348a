# %% [markdown]
# # Evaluating a policy with 40,000 features
#
# Many features, few of them active at a time: here LSTD is out of the question. What is left are Krylov LSTD, TD and
# t-LSTD. This page shows how to find out which of them to use, on a problem where the answer is not the one that the
# paper gives. It was run by
#
#     uv run python docs/tutorials/build.py forty_thousand_features
#
# in some ten seconds; the script is `docs/tutorials/forty_thousand_features.py`.
#
# ## The problem
#
# [Energy storage](../domains.md#energystorage): a battery between wind, a market and a demand. A policy that is nearly
# optimal charges and discharges it, and the value of a state is the revenue to come, discounted with γ = 0.8. Four
# numbers are observed: storage, wind, price, demand. 32 tilings of 5 × 5 × 10 × 5 tiles and a bias make 40,001
# features, of which 33 are active in a state.

# %%
import matplotlib.pyplot as plt
import numpy as np

from tlstd import TileCoder
from tlstd.domains.energy_programme import exact_values, optimal_policy
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.streams import encode, trajectory

storage = EnergyStorage()
policy = optimal_policy(storage)  # by dynamic programming: some seconds, once; then it is cached
tiles = TileCoder(storage.low, storage.high, tiles=(5, 5, 10, 5), tilings=32, bias=True)
d, active = tiles.n_features, 33
paths = [trajectory(storage, policy, n_steps=4_000, seed=seed) for seed in range(3)]
streams = [encode(path, tiles, storage) for path in paths]
print(streams[0])

# %% [markdown]
# ## How good can it be?
#
# Before any learning: what is a bad error, and what is the best one possible? Here the true values are known exactly,
# so that both can be said, on 2,000 states of another path.

# %%
held_out = trajectory(storage, policy, n_steps=2_100, seed=100)
test_states = held_out.states[:2000]
truth = exact_values(storage, policy, test_states)
X_test = tiles.encode_many(storage.observe(test_states))


def error(model):
    """Root mean square error on the test states."""
    return np.sqrt(np.mean((model.predict(X_test) - truth) ** 2))


print(f"values: mean {truth.mean():.0f}, standard deviation {truth.std():.0f}")

# %% [markdown]
# Predicting the mean everywhere has an error of about 430: whatever does not get below that has learned nothing. From
# below there is a floor of 106: the features do not see the time of day, on which values depend
# ([domains](../domains.md#energystorage)).
#
# ## LSTD: how far does it get?
#
# Its matrix has a row and a column for every feature seen. All of it would be

# %%
print(f"{8 * d**2 / 1e9:.1f} GB")

# %% [markdown]
# and a solution costs the cube of the features seen. It is easily tried with a few samples:

# %%
from time import process_time

from tlstd import LSTD

for n in (20, 40, 80):
    model = LSTD(d, lambda_=1.0)
    model.update_many(streams[0][:n])
    before = process_time()
    model.predict(X_test)
    seconds = process_time() - before
    print(f"{n:4} samples: {model.n_seen:5,} features seen, one solution takes {seconds:6.3f} s")

# %% [markdown]
# 4,000 samples see 28,000 features, 19 times as many as 80 samples: a solution would take some 7,000 times as long,
# hours. So no LSTD.
#
# ## Krylov LSTD
#
# It solves the same equations without making the matrix: the samples are kept, and A times a vector is one pass over
# them. Its solution lies in the space of b, Ab, A²b, …, whose dimension is chosen by held-out returns, so that there is
# nothing to tune. The mean error of three streams:

# %%
from tlstd import KrylovLSTD

marks = [250, 500, 1000, 2000, 4000]


def learning_curve(make, marks=marks, streams=streams):
    """Mean error over the streams at each mark; also the last model and the CPU seconds of one run."""
    errors, before = np.zeros((len(streams), len(marks))), process_time()
    for run, stream in enumerate(streams):
        model, start = make(), 0
        for i, stop in enumerate(marks):
            model.update_many(stream[start:stop])
            start = stop
            errors[run, i] = error(model)
    return errors.mean(axis=0), model, (process_time() - before) / len(streams)


def report(name, curve, seconds, model):
    """One line of a table."""
    cells = "".join(f"{value:7.0f}" for value in curve) + "      -" * (len(marks) - len(curve))
    print(f"{name:32}{cells} {seconds:6.2f} s {model.nbytes / 1e6:5.0f} MB")


def heading():
    """The first line of a table."""
    print(f"{'mean error after samples':32}" + "".join(f"{mark:7,}" for mark in marks) + "     time   memory")


curves, truncated = {}, {}
heading()
curves["Krylov LSTD"], krylov, seconds = learning_curve(lambda: KrylovLSTD(d, lambda_=0.9))
report("Krylov LSTD", curves["Krylov LSTD"], seconds, krylov)
print(f"{krylov.chosen_dimension} dimensions. {krylov.choices[0].note}")

# %% [markdown]
# Five solutions, each with its choice of the dimension, are in this time. `reads="stream"` has a solution at every
# step. The rest of the page is what one would try otherwise.
#
# ## t-LSTD: rank by rank
#
# λ = 1, because a small rank with tiles needs it ([choosing rank and λ](../how_to/rank_and_lambda.md)).

# %%
from tlstd import TLSTD

heading()
for rank, until in ((10, 3), (40, 5), (200, 4)):  # 10 and 200 not to the end, to save time
    name = f"t-LSTD, rank {rank}"
    curves[name], truncated[rank], seconds = learning_curve(
        lambda rank=rank: TLSTD(d, rank=rank, lambda_=1.0), marks[:until]
    )
    report(name, curves[name], seconds, truncated[rank])

# %% [markdown]
# Memory is no problem any more: 16 bytes per feature seen and rank, and a buffer. But rank 10 does not get below the
# error of the mean, and rank 40, the paper's choice, hardly below 400. Why? The model itself can say:

# %%
from tlstd.inspection import examine

for rank, model in truncated.items():
    factors = examine(model).factors
    ratio = factors.singular_values[-1] / factors.singular_values[0]
    print(f"rank {rank}: the smallest of its singular values is {ratio:.3f} of the largest")

# %%
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained", num="Singular values at rank 200")
sigma = truncated[200].singular_values
axis.semilogy(np.arange(1, len(sigma) + 1), sigma / sigma[0], ".", color="tab:orange")
axis.axhline(truncated[200].rcond, color="gray", linestyle="--", label="cut-off: what is below is not used")
for rank in (10, 40):
    axis.axvline(rank + 0.5, color="gray", linewidth=0.8)
    axis.annotate(f" rank {rank}", (rank, 2e-4))
axis.set(xlabel="number", ylabel="singular value / largest", ylim=(5e-5, 2))
axis.legend()
plt.show()

# %% [markdown]
# The singular values hardly fall: at 200 they are still hundreds of times above the cut-off. Each of them is a
# direction in which the stream says something about the values, and all beyond the rank are thrown away. There is no
# rank at which this spectrum ends; a higher one is better, and costs more.
#
# ## TD, fairly tuned
#
# The competitor: cheap, 33 weights touched per step, but with a step size, which has to be chosen on *other* data than
# what is reported. Where true values are not known one compares with returns: the sum of discounted rewards that
# really followed. They are noisy, but the noise is the same for all. (With γ = 0.8 the first 60 rewards are all of
# it.)

# %%
from tlstd import TD


def returns(path, n, gamma=0.8, horizon=60):
    """Discounted sums of the rewards that followed each of the first ``n`` states of a path."""
    return np.array([gamma ** np.arange(horizon) @ path.rewards[t : t + horizon] for t in range(n)])


tuning = trajectory(storage, policy, n_steps=6_060, seed=1000)
tuning_stream = encode(tuning, tiles, storage)
later = slice(4000, 6000)
X_later, G_later = tuning_stream.X[later], returns(tuning, 6000)[later]
scores = {}
for alpha in (0.03, 0.1, 0.3, 0.5, 1.0):
    model = TD(d, step_size=alpha / active, lambda_=0.9)
    model.update_many(tuning_stream[:4000])
    scores[alpha] = np.sqrt(np.mean((model.predict(X_later) - G_later) ** 2))
print("against returns: " + ", ".join(f"{alpha:g}/33: {score:.0f}" for alpha, score in scores.items()))
alpha = min(scores, key=scores.get)
heading()
curves["TD"], td, seconds = learning_curve(lambda: TD(d, step_size=alpha / active, lambda_=0.9))
report(f"TD, step size {alpha:g}/33", curves["TD"], seconds, td)

# %% [markdown]
# After 250 samples no method is below the error of the mean. From then on TD is ahead of rank 40, in a fraction of the
# time; rank 200 is ahead of TD at 500 and 1,000 samples, and behind it at 2,000. That is not what the paper reports
# for its parameters of this benchmark (ours are other ones, see [what does not hold here](../experiments.md)), and it
# is the reason why one measures.
#
# ## Other settings of t-LSTD
#
# Before giving up: does another λ help, a shorter buffer, another cut-off? One stream, 1,000 samples, rank 40.

# %%
options = {
    "λ=1": {"lambda_": 1.0},
    "λ=0.9": {"lambda_": 0.9},
    "λ=0.9, subspace_lambda=1": {"lambda_": 0.9, "subspace_lambda": 1.0},
    "λ=0": {"lambda_": 0.0},
    "λ=1, buffer_size=40 (the paper)": {"lambda_": 1.0, "buffer_size": 40},
    "λ=1, rcond=0.01 (the paper)": {"lambda_": 1.0, "rcond": 0.01},
}
heading()
for name, settings in options.items():
    curve, model, seconds = learning_curve(
        lambda settings=settings: TLSTD(d, rank=40, **settings), marks[:3], streams[:1]
    )
    report(name, curve, seconds, model)

# %% [markdown]
# λ = 0 is the worst: the values lie in directions that A hardly has then. λ = 0.9 loses less, and next to nothing if
# the subspaces are taken from λ = 1. Buffer and cut-off make no difference. None of them repairs a rank that is too
# small.
#
# ## Combining both
#
# t-LSTD is ahead while samples are few, TD when they are many, so: `Handover`, t-LSTD first and then TD from its
# weights. With 500 samples rank 200 costs little, because few features have been seen. `ATD` makes a TD step and a
# truncated least-squares step at every sample; it reads its factors each time, so it is run for 500 samples of one
# stream only.

# %%
from tlstd import ATD, Decay, Handover


def hand_over():
    """Rank 200 for 500 samples, then TD."""
    return Handover(TLSTD(d, rank=200, lambda_=1.0), TD(d, step_size=alpha / active, lambda_=0.9), after=500)


heading()
curves["rank 200, then TD"], both, seconds = learning_curve(hand_over)
report("rank 200, TD from 500 on", curves["rank 200, then TD"], seconds, both)
curve, model, seconds = learning_curve(
    lambda: ATD(d, 40, step_size=Decay(1.0, 0), lambda_=1.0, eta=alpha / active), marks[:2], streams[:1]
)
report("ATD, rank 40", curve, seconds, model)

# %%
figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained", num="Error against samples of all methods")
colours = {"TD": "tab:blue", "rank 200, then TD": "tab:olive", "Krylov LSTD": "tab:green"}
for number, (name, curve) in enumerate(curves.items()):
    axis.plot(marks[: len(curve)], curve, marker="Pos^Dv>"[number], color=colours.get(name, "tab:orange"), label=name)
axis.axhline(truth.std(), color="gray", linestyle=":", label="the mean of the values")
axis.axhline(106, color="gray", linestyle="--", label="floor of these features")
axis.set(xscale="log", xlabel="samples", ylabel="RMSE", xticks=marks, xticklabels=marks, ylim=(0, 700))
axis.minorticks_off()
axis.legend(loc="lower left", ncols=2)
plt.show()

# %% [markdown]
# From 1,000 samples on Krylov LSTD is below all of them, with nothing tuned. Of the others the combination is the
# best or level with the best, and costs a fraction of rank 200 kept to the end. ATD with TD's step size as its η is
# no better than TD here in its first 500 samples; with more of them it overtakes t-LSTD of its rank
# ([performance](../performance.md#error-against-time)).
#
# ## Deciding without true values
#
# Who has no true values decides by returns on data that were not learned from. Are the methods then in the same order?

# %%
G = returns(held_out, 2000)
candidates = {"Krylov LSTD": krylov, "t-LSTD, rank 40": truncated[40], "TD": td, "rank 200, then TD": both}
print(f"{'after 4,000 samples':24}{'true values':>12}{'returns':>9}")
for name, model in candidates.items():
    print(f"{name:24}{error(model):12.0f}{np.sqrt(np.mean((model.predict(X_test) - G) ** 2)):9.0f}")

# %% [markdown]
# The noise of returns lies on top of all errors, but the order is the same.
#
# ## What to take from this
#
# 1. Know the error of the mean, and a floor if there is one. Everything else lies between.
# 2. LSTD: n² numbers for n features *seen*, n³ time. Beyond some thousand features it is out.
# 3. Look at the singular values (`examine`, or `uv run tlstd inspect`). If they do not reach the cut-off within a rank
#    that you can pay for, truncation has a bias, and more data will not remove it.
# 4. With a small rank: λ = 1, or `subspace_lambda=1.0`.
# 5. Where samples can be kept: Krylov LSTD. It has the lowest error from the same samples, for some times TD's time.
# 6. Where they cannot: TD with a step size that was chosen on other data.
#
# With features whose spectrum falls quickly the decision is another one: see [t-LSTD in ten minutes](ten_minutes.md)
# and [which estimator when](../which_estimator.md).
