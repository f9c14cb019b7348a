# %% [markdown]
# # Ten million steps, on a laptop and on Dask
#
# A log that is too long to look at, in many files: first on one machine, then on several processes, of which one is
# killed on the way. Everything on this page was run by
#
#     uv run python docs/tutorials/build.py ten_million_steps
#
# on two cores, in some minutes; the script is `docs/tutorials/ten_million_steps.py`. It takes the extras `logs` and
# `cluster`.
#
# ## A log in ten files
#
# The careless driver of [from a log to an answer](from_a_log.md) again, for ten million steps. Each file has a million
# of them, and an episode lies within one file. (It may also go on in the next one: [how](../clusters.md).)

# %%
import time
from pathlib import Path

import numpy as np
import polars as pl

import tlstd
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.policies import EpsilonGreedy
from tlstd.streams import trajectory

car = MountainCar()
careless = EpsilonGreedy(car.policy(), car.actions, epsilon=0.3)
folder = Path("drives")
folder.mkdir()
for number in range(10):
    path = trajectory(car, careless, n_steps=1_000_000, seed=number, episode_cap=200)
    ends = path.terminated | path.truncated
    table = pl.DataFrame(
        {
            "episode": np.cumsum(ends) - ends + number * 1_000_000,
            "obs_0": path.states[path.rows, 0],
            "obs_1": path.states[path.rows, 1],
            "action": path.actions.astype(int) + 1,
            "reward": path.rewards,
            "next_obs_0": path.states[path.rows + 1, 0],
            "next_obs_1": path.states[path.rows + 1, 1],
            "terminated": path.terminated,
            "truncated": path.truncated,
        }
    )
    table.write_parquet(folder / f"{number}.parquet")
size = sum(file.stat().st_size for file in folder.iterdir())
print(f"{len(list(folder.iterdir()))} files, {size / 1e6:.0f} MB")

# %% [markdown]
# ## On one machine
#
# The same line as for a small log. What is kept in memory are the samples in a compact form, not the table.

# %%
began = time.perf_counter()
here = tlstd.evaluate("drives/*.parquet", gamma=0.99, estimators=["KrylovLSTD"])
print(f"{time.perf_counter() - began:.0f} s")
print(f"{here.value:.3f} ± {here.interval().half_width:.3f}")
print(here.rows[0].name, here.rows[0].note)

# %% [markdown]
# λ and dimension were chosen on a part of the log; the value and its interval are of all of it. Is it right? The driver
# can be asked to drive again, 40 times from each of 1,000 starts of the log.

# %%
from tlstd.evaluation import rollout_values

starts = table.group_by("episode", maintain_order=True).first().select("obs_0", "obs_1").to_numpy()[:1000]
again = rollout_values(car, starts, n_rollouts=40, rng=np.random.default_rng(100), policy=careless)
print(f"{again.mean.mean():.3f} from these starts, where the log's answer is {here.predict(starts).mean():.3f}")

# %% [markdown]
# ## On Dask
#
# Give it a client, and the files go to the workers of that: processes of this machine as here, or hundreds of machines
# (`Client("tcp://scheduler:8786")`). Each file is read, encoded and kept by one worker, and only vectors over the
# features travel. On the command line: `tlstd evaluate 'drives/*.parquet' --gamma 0.99 --workers 2`, or `--cluster
# ADDRESS`.

# %%
from distributed import Client, LocalCluster

with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
    began = time.perf_counter()
    there = tlstd.evaluate("drives/*.parquet", gamma=0.99, cluster=client)
    print(f"{time.perf_counter() - began:.0f} s")
print(f"{there.value:.3f} ± {there.interval().half_width:.3f}")

# %% [markdown]
# ## A worker dies
#
# In the middle of it, by `kill -9`. Its files are read again by the other one, and the answer is the same to the last
# bit: sums are taken in the order of the files' names, whoever has which.

# %%
import os
import signal
import threading

with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
    pid = client.run(os.getpid)[cluster.workers[0].address]
    threading.Timer(15.0, os.kill, (pid, signal.SIGKILL)).start()
    survived = tlstd.evaluate("drives/*.parquet", gamma=0.99, cluster=client)
print(survived.value == there.value, survived.interval() == there.interval())

# %% [markdown]
# ## When ten million is not many
#
# Ask before anything starts: `tlstd evaluate 'drives/*.parquet' --gamma 0.99 --workers 2 --plan` reads one file and
# says memory, traffic and time of all. Samples that do not fit go to the workers' disks (`--spill FOLDER`), rounds that
# were computed are kept (`--checkpoint FOLDER`), so that Ctrl-C costs little. What was measured on a hundred million
# steps, what a thousand times as many would take, and what would break first: [samples on several
# machines](../clusters.md).
