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
# A fleet of machines. Each step one runs at full load or not, which its operator decides by its temperature; full load
# earns 1, wears the machine and heats it. A worn and hot machine may fail: that costs 20, and ends its episode. After
# 400 steps a machine is taken out of the log (a time limit, no end). Each file has 5,900 machines.

# %%
import time
from pathlib import Path

import numpy as np
import polars as pl

import tlstd


def fleet(n_machines, n_steps, rng):
    """Steps of machines side by side, as columns."""
    heat, wear, alive = rng.normal(size=n_machines), rng.random(n_machines), np.arange(n_machines)
    parts = []
    for step in range(n_steps):
        full = rng.random(alive.size) < 1.0 / (1.0 + np.exp(heat))
        fails = rng.random(alive.size) < 0.004 * wear * np.exp(0.5 * heat)
        after_heat = 0.9 * heat + 0.3 * full + 0.3 * rng.normal(size=alive.size)
        after_wear = wear + 0.005 * (1.0 + full) * rng.random(alive.size)
        ends = np.full(alive.size, step + 1 == n_steps) & ~fails
        reward = full - 20.0 * fails
        parts.append((alive, heat, wear, full, reward, after_heat, after_wear, fails, ends))
        heat, wear, alive = after_heat[~fails], after_wear[~fails], alive[~fails]
    names = ["episode", "obs_0", "obs_1", "action", "reward", "next_obs_0", "next_obs_1", "terminated", "truncated"]
    return pl.DataFrame({name: np.concatenate([part[i] for part in parts]) for i, name in enumerate(names)})


folder = Path("fleet")
folder.mkdir()
for number in range(10):
    table = fleet(5_900, 400, np.random.default_rng(number)).sort("episode", maintain_order=True)
    table = table.with_columns(pl.col("episode") + 10_000 * number, pl.col("action").cast(pl.Int64))
    table.write_parquet(folder / f"{number}.parquet")
rows = sum(pl.scan_parquet(file).select(pl.len()).collect().item() for file in folder.iterdir())
size = sum(file.stat().st_size for file in folder.iterdir())
print(f"{rows:,} steps, {size / 1e6:.0f} MB")

# %% [markdown]
# ## On one machine
#
# The same line as for a small log, but for the other estimators, which would stand beside the answer. What is kept in
# memory are the samples in a compact form, not the table.

# %%
began = time.perf_counter()
here = tlstd.evaluate("fleet/*.parquet", gamma=0.99, estimators=["KrylovLSTD"])
print(f"{time.perf_counter() - began:.0f} s")
print(here.rows[0].name, here.rows[0].note)
print(here.interval())

# %% [markdown]
# λ and dimension were chosen on a part of the log; the value and its interval are of all of it. Is it right? Here other
# machines can be run, and for 1,500 steps.

# %%
again = fleet(20_000, 1_500, np.random.default_rng(100))
steps = again.select(pl.int_range(pl.len()).over("episode")).to_series().to_numpy()
weighted = again.select("episode", earned=pl.col("reward") * 0.99**steps)
returns = weighted.group_by("episode").agg(pl.col("earned").sum())["earned"]
print(f"{returns.mean():.2f} ± {2 * returns.std() / len(returns) ** 0.5:.2f} of {len(returns):,} new machines")

# %% [markdown]
# ## On Dask
#
# Give it a client, and the files go to the workers of that: processes of this machine as here, or hundreds of machines
# (`Client("tcp://scheduler:8786")`). Each file is read, encoded and kept by one worker, and only vectors over the
# features travel. On the command line: `tlstd evaluate 'fleet/*.parquet' --gamma 0.99 --workers 2`, or `--cluster
# ADDRESS`.

# %%
from distributed import Client, LocalCluster

with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
    began = time.perf_counter()
    there = tlstd.evaluate("fleet/*.parquet", gamma=0.99, estimators=["KrylovLSTD"], cluster=client)
    print(f"{time.perf_counter() - began:.0f} s")
print(there.interval())

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
    pid = min(client.run(os.getpid).values())
    threading.Timer(15.0, os.kill, (pid, signal.SIGKILL)).start()
    survived = tlstd.evaluate("fleet/*.parquet", gamma=0.99, estimators=["KrylovLSTD"], cluster=client)
print(survived.value == there.value, survived.interval() == there.interval())

# %% [markdown]
# ## When ten million is not many
#
# Ask before anything starts: `tlstd evaluate 'fleet/*.parquet' --gamma 0.99 --workers 2 --plan` reads one file and
# says memory, traffic and time of all. Samples that do not fit go to the workers' disks (`--spill FOLDER`), rounds that
# were computed are kept (`--checkpoint FOLDER`), so that Ctrl-C costs little. What was measured on a hundred million
# steps, what a thousand times as many would take, and what would break first: [samples on several
# machines](../clusters.md).
