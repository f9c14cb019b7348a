"""Time and memory of ``tlstd evaluate`` on a large log of four columns, in several Parquet files.

uv run python -m tlstd_lab.measurements.large_log                     # 10,000,000 steps; about ten minutes
uv run python -m tlstd_lab.measurements.large_log 1000000 on-policy   # fewer, and only lines with this word
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.polynomial.hermite_e import hermegauss
from scipy.interpolate import CubicSpline

from tlstd_lab.tables import table

STEPS = 10_000_000
FILES = 10
LONGEST = 1_000
"""Steps after which an episode is cut off."""
TERMINATION = 1 / 400
"""Chance of a step to end the episode."""
AT_ONCE = 2_000
"""Episodes that are simulated side by side."""

POLICY = '''"""The policy asked for: action 1 four times in five."""
import numpy as np

def target(seen):
    return np.tile([0.2, 0.8], (len(seen), 1))
'''
HASHED = """
import sys
import numpy as np
import tlstd

log = tlstd.Log.from_frame(sys.argv[1])
seen = log.observations
tiles = tlstd.TileCoder(seen.min(axis=0), seen.max(axis=0), tiles=8, tilings=29, hash_size=65_536, bias=True)
print(tlstd.evaluate(log, gamma=0.99, features=tiles))
"""


def episodes(n: int, rng: np.random.Generator) -> dict[str, Any]:
    """``n`` episodes of a walk in four dimensions that action 1 pushes up; columns by name, sorted by episode."""
    state, alive = rng.normal(size=(n, 4)), np.arange(n)
    parts = []
    for t in range(LONGEST):
        chance = 1.0 / (1.0 + np.exp(-state[:, 0]))
        action = (rng.random(alive.size) < chance).astype(np.int64)
        reward = np.cos(state[:, 1]) + 0.1 * action + 0.5 * (state[:, 2] * state[:, 3] > 0.0)
        ended = rng.random(alive.size) < TERMINATION
        taken = np.where(action == 1, chance, 1.0 - chance)
        parts.append((alive, np.full(alive.size, t), state, action, taken, reward, ended))
        pushed = np.column_stack([0.2 * action - 0.1, 0.1 * state[:, 0], np.zeros(alive.size), np.zeros(alive.size)])
        state = 0.97 * state + pushed + 0.2 * rng.normal(size=state.shape)
        alive, state = alive[~ended], state[~ended]
    whole = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((whole[1], whole[0]))
    episode, step, state, action, taken, reward, ended = (column[order] for column in whole)
    return {
        "episode": episode,
        "step": step,
        **{f"obs_{i}": state[:, i] for i in range(4)},
        "action": action,
        "probability": taken,
        "reward": reward,
        "terminated": ended,
    }


def write(folder: Path, n_steps: int, n_files: int = FILES) -> None:
    """The log, in several files."""
    rng, first, left = np.random.default_rng(0), 0, n_steps
    for number in range(n_files):
        frames, wanted = [], -(-left // (n_files - number))
        left -= wanted
        while wanted > 0:
            frame = pl.DataFrame(episodes(AT_ONCE, rng)).with_columns(pl.col("episode") + first)
            first += AT_ONCE
            frames.append(frame.head(wanted))
            wanted -= frames[-1].height
        pl.concat(frames).write_parquet(folder / f"steps-{number:0{len(str(n_files - 1))}}.parquet")


def true_start_value(gamma: float, n_steps: int = 1_500) -> float:
    """The mean value of the start states under the policy that acted, by quadrature.

    Half of the steps have action 1 and half a positive product, by symmetry. The second number is Gaussian given the
    path of the first, s: E cos = Re E exp(i 0.1 Σ 0.97^(t-1-k) s_k) times a Gaussian factor. That expectation is G_t of
    the first s, with G_0 = 1 and G_{t+1}(s) = exp(i 0.1 0.97ᵗ s) E[G_t(s') | s].
    """
    grid = np.linspace(-6.0, 6.0, 301)
    nodes, weights = hermegauss(40)
    weights = weights / weights.sum()
    spline = CubicSpline(grid, np.eye(grid.size))
    up = 1.0 / (1.0 + np.exp(-grid))
    after = np.zeros((grid.size, grid.size))  # E[G(s') | s] from G on the grid
    for push, chance in ((0.1, up), (-0.1, 1.0 - up)):
        reached = np.clip(0.97 * grid[:, None] + push + 0.2 * nodes, -6.0, 6.0)
        after += chance[:, None] * np.einsum("sk...,k->s...", spline(reached), weights)
    first = weights @ spline(np.clip(nodes, -6.0, 6.0))
    G, total = np.ones(grid.size, dtype=np.complex128), 0.0
    for t in range(n_steps):
        squared = 0.97 ** (2 * t)
        variance = squared + 0.04 * (1.0 - squared) / (1.0 - 0.97**2)
        cosine = float((first @ G).real) * np.exp(-variance / 2.0)
        total += (gamma * (1.0 - TERMINATION)) ** t * (cosine + 0.05 + 0.25)
        G = np.exp(0.1j * 0.97**t * grid) * (after @ G)
    return total


def measure(command: list[str], folder: Path) -> tuple[float, float, float, str]:
    """Seconds, CPU seconds, the most bytes in use, and the output of a command."""
    with (folder / "output").open("w+") as output:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=output)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with {process.returncode}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024.0, text


def main(n_steps: int, word: str) -> None:
    """Print the table and the answers."""
    evaluate = [str(Path(sys.executable).with_name("tlstd")), "evaluate", "steps-*.parquet", "--gamma", "0.99"]
    cases = {
        "on-policy": evaluate,
        "on-policy, hashed": [sys.executable, "-c", HASHED, "steps-*.parquet"],
        "another policy": [*evaluate, "--policy", "policies:target"],
        "another policy, no probabilities": [*evaluate, "--policy", "policies:target", "--map", "probability="],
    }
    lines, answers = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, n_steps)
        (folder / "policies.py").write_text(POLICY, encoding="utf-8")
        for case, command in cases.items():
            if word not in case:
                continue
            seconds, cpu, memory, text = measure(command, folder)
            lines.append([case, f"{seconds / 60:.1f}", f"{cpu / 60:.1f}", f"{memory / 1e9:.1f}"])
            answers.append(f"{case}\n\n{text}")
    print("\n\n".join(answers))
    print(table(["", "minutes", "CPU minutes", "GB"], lines))


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    words = [word for word in sys.argv[1:] if not word.isdigit()]
    main(numbers[0] if numbers else STEPS, words[0] if words else "")
