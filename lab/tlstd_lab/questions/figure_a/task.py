"""Task: the singular values of LSTD's averaged matrix after many whole episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.diagnostics import spectrum
from tlstd.domains.base import Domain
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.errors import InvalidParameterError
from tlstd.features.base import FeatureMap
from tlstd.features.rbf import RBF
from tlstd.features.tile_coding import TileCoder
from tlstd.streams.simulated import Trajectory, encode, trajectory

DOMAINS: dict[str, type[MountainCar | Pendulum]] = {"car": MountainCar, "pendulum": Pendulum}
GRID = 10
"""Tiles, or centres, per dimension."""
ENTRIES = 4_000_000
"""Numbers of one block of encoded states: 32 MB."""


def make_features(domain: Domain, settings: Mapping[str, Any]) -> FeatureMap:
    """Tiles of 10×10 if there are ``tilings``, RBFs on a 10×10 grid if there is a ``width``.

    Example
    -------
    >>> make_features(MountainCar(), {"tilings": 3}).n_features, make_features(MountainCar(), {"width": 0.2}).n_features
    (300, 100)
    """
    if set(settings) == {"tilings"}:
        return TileCoder(domain.low, domain.high, tiles=GRID, tilings=settings["tilings"])
    if set(settings) == {"width"}:
        return RBF(domain.low, domain.high, grid=GRID, width=settings["width"])
    raise InvalidParameterError(f"features are {dict(settings)}: give either tilings or width")


def episodes(domain: Domain, count: int, seed: int) -> Trajectory:
    """The first ``count`` whole episodes of the domain's stream with this seed."""
    n_steps = 100 * count
    while True:
        path = trajectory(domain, n_steps=n_steps, seed=seed)
        ends = np.flatnonzero(path.terminated | path.truncated)
        if ends.size > count:  # the last end is that of the stream
            return part(path, 0, int(ends[count - 1]) + 1)
        n_steps *= 2


def part(path: Trajectory, start: int, stop: int) -> Trajectory:
    """Steps ``start`` to ``stop`` of a trajectory, which begin an episode."""
    first = path.rows[start]
    steps = slice(start, stop)
    return Trajectory(
        path.states[first : path.rows[stop - 1] + 2],
        path.rows[steps] - first,
        path.actions[steps],
        path.rewards[steps],
        path.terminated[steps],
        path.truncated[steps],
        path.rhos[steps],
    )


def blocks(path: Trajectory, features: FeatureMap, domain: Domain) -> Iterator[Transitions]:
    """The trajectory with features, some whole episodes at a time, so that they need not be held all at once."""
    per_state = GRID * GRID if isinstance(features, RBF) else getattr(features, "n_active", 1)
    length = max(1, ENTRIES // per_state)
    ends = np.flatnonzero(path.terminated | path.truncated) + 1
    start = 0
    while start < len(path.rows):
        stop = int(ends[max(np.searchsorted(ends, start + length, side="right") - 1, np.searchsorted(ends, start + 1))])
        yield encode(part(path, start, stop), features, domain)
        start = stop


def singular_values(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """Singular values of A = (1/T) Σ z_t d_tᵀ, as many as there are features, in falling order.

    Settings: ``domain`` ("car" or "pendulum"), ``features`` (see :func:`make_features`), ``episodes``, ``lambda_``.
    """
    if settings["domain"] not in DOMAINS:
        raise InvalidParameterError(f"there is no domain {settings['domain']!r}: choose one of {', '.join(DOMAINS)}")
    domain = DOMAINS[settings["domain"]]()
    features = make_features(domain, settings["features"])
    model = LSTD(features.n_features, lambda_=settings["lambda_"])
    for steps in blocks(episodes(domain, settings["episodes"], seed), features, domain):
        model.update_many(steps)
    sigma = np.zeros(features.n_features)  # features never seen have empty rows and columns
    _, A, _ = model.system()
    sigma[: len(A)] = spectrum(A)
    return {"sigma": sigma}
