"""Data sets of Minari: T + 1 observations and T rewards an episode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tlstd.core.extras import needs
from tlstd.errors import InvalidInputError
from tlstd.logs.table import Table


def table(dataset: Any) -> tuple[Table, str]:
    """The columns of a data set, with a row without a reward for the observation after each last step."""
    dataset = _opened(dataset)
    from gymnasium.spaces import Discrete  # minari needs it too

    observed, actions, rewards, terminated, truncated, names = [], [], [], [], [], []
    for episode in dataset.iterate_episodes():
        n = len(episode.rewards)
        if not n:
            continue
        observed.append(_rows(episode.observations, n + 1, episode.id, "observations"))
        actions.append(_padded(_rows(episode.actions, n, episode.id, "actions"), 0))
        rewards.append(_padded(np.asarray(episode.rewards, dtype=np.float64), np.nan))
        terminated.append(_padded(np.asarray(episode.terminations, dtype=np.bool_), False))
        truncated.append(_padded(np.asarray(episode.truncations, dtype=np.bool_), False))
        names.append(np.full(n + 1, episode.id))
    name = f"the Minari data set {dataset.spec.dataset_id}"
    if not names:
        raise InvalidInputError(f"{name} has no steps: there is nothing to learn from")
    space = dataset.observation_space
    discrete = isinstance(space, Discrete)
    columns = [np.concatenate(parts) for parts in (observed, actions, rewards, terminated, truncated, names)]
    if isinstance(space, Discrete):
        columns[0] = columns[0] - int(space.start)
    made = Table(
        observation=columns[0],
        action=columns[1],
        reward=columns[2],
        terminated=columns[3],
        truncated=columns[4],
        episode=columns[5],
        discrete=discrete,
        n_observations=int(space.n) if isinstance(space, Discrete) else None,
        final_rows_expected=True,
    )
    return made, name


def _opened(dataset: Any) -> Any:
    """The data set itself, where its name or its folder may have been passed."""
    with needs("minari"):
        import minari
    if isinstance(dataset, (str, Path)):
        folder = Path(dataset)
        try:
            dataset = (
                minari.MinariDataset(folder / "data")
                if (folder / "data").is_dir()
                else minari.load_dataset(str(dataset))
            )
        except (FileNotFoundError, ValueError, KeyError, OSError) as error:
            raise InvalidInputError(
                f"there is no Minari data set {str(dataset)!r} here ({error}): download it with "
                "minari.download_dataset, or pass its folder or the data set itself"
            ) from error
    if not isinstance(dataset, minari.MinariDataset):
        raise InvalidInputError(
            f"the data set is {type(dataset).__name__}: pass a Minari data set, its name or its folder"
        )
    return dataset


def _rows(value: Any, n: int, episode: Any, what: str) -> Any:
    if isinstance(value, (dict, tuple)):
        raise InvalidInputError(
            f"the {what} of episode {episode} are of several parts ({type(value).__name__}): flatten them, or pass "
            "those that matter to Log.from_arrays"
        )
    array = np.asarray(value)
    if len(array) != n:
        raise InvalidInputError(
            f"episode {episode} has {len(array)} {what} where it needs {n}: the data set is damaged"
        )
    return array


def _padded(array: Any, last: Any) -> Any:
    """One row more, for the final observation."""
    return np.concatenate([array, np.full((1, *array.shape[1:]), last, dtype=array.dtype)])
