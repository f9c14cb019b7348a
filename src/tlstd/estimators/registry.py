"""The estimators by name: the one line to add for a new one."""

from __future__ import annotations

from collections.abc import Callable

from tlstd.estimators.atd import ATD
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.handover import Handover
from tlstd.estimators.ilstd import ILSTD
from tlstd.estimators.krylov_lstd import KrylovLSTD
from tlstd.estimators.lstd import LSTD
from tlstd.estimators.step_sizes import Decay
from tlstd.estimators.td import TD
from tlstd.estimators.tlstd import TLSTD
from tlstd.estimators.true_online_td import TrueOnlineTD

Factory = Callable[..., LinearEstimator]

ESTIMATORS: dict[str, Factory] = {
    "LSTD": lambda n_features, **options: LSTD(n_features, lambda_=0.7, **options),
    "LSTD (ridge)": lambda n_features, **options: LSTD(n_features, lambda_=0.7, ridge=0.01, **options),
    "LSTD (recursive)": lambda n_features, **options: LSTD(n_features, lambda_=0.7, solver="recursive", **options),
    "KrylovLSTD": lambda n_features, **options: KrylovLSTD(n_features, lambda_=0.7, dimension=8, **options),
    "KrylovLSTD (stream)": lambda n_features, **options: KrylovLSTD(
        n_features, lambda_=0.7, dimension=8, reads="stream", **options
    ),
    "KrylovLSTD (max_samples)": lambda n_features, **options: KrylovLSTD(
        n_features, lambda_=0.7, dimension=8, max_samples=32, **options
    ),
    "TLSTD": lambda n_features, **options: TLSTD(n_features, max(1, n_features // 2), lambda_=0.7, **options),
    "TLSTD (projected)": lambda n_features, **options: TLSTD(
        n_features, max(1, n_features // 2), lambda_=0.7, buffer_size=16, reads="projected", **options
    ),
    "TLSTD (full rank)": lambda n_features, **options: TLSTD(n_features, n_features, lambda_=0.7, **options),
    "TLSTD (replacing)": lambda n_features, **options: TLSTD(
        n_features, n_features, lambda_=0.7, trace="replacing", **options
    ),
    "TLSTD (subspace)": lambda n_features, **options: TLSTD(
        n_features, n_features, lambda_=0.7, subspace_lambda=1.0, **options
    ),
    "TD": lambda n_features, **options: TD(n_features, step_size=0.05, lambda_=0.7, **options),
    "TD (replacing)": lambda n_features, **options: TD(
        n_features, step_size=0.05, lambda_=0.7, trace="replacing", **options
    ),
    "TrueOnlineTD": lambda n_features, **options: TrueOnlineTD(n_features, step_size=0.05, lambda_=0.7, **options),
    "ILSTD": lambda n_features, **options: ILSTD(
        n_features, step_size=Decay(0.1, 10), lambda_=0.7, coordinates_per_step=2, **options
    ),
    "ATD": lambda n_features, **options: ATD(
        n_features, n_features // 2, step_size=Decay(1.0, 10), lambda_=0.7, eta=0.01, **options
    ),
    "Handover": lambda n_features, **options: Handover(
        TLSTD(n_features, max(1, n_features // 2), lambda_=0.7, **options),
        TD(n_features, step_size=0.05, lambda_=0.7, **options),
        after=40,
    ),
    "Handover (settled)": lambda n_features, **options: Handover(
        LSTD(n_features, lambda_=0.7, **options),
        ATD(n_features, n_features // 2, step_size=Decay(1.0, 10), lambda_=0.7, eta=0.01, **options),
        settled=0.5,
        patience=11,
    ),
}
"""Typical instances, made from the number of features; the contract suite runs on each of them."""

CLASSES: dict[str, type[LinearEstimator]] = {
    cls.__name__: cls for cls in (ATD, Handover, ILSTD, KrylovLSTD, LSTD, TD, TLSTD, TrueOnlineTD)
}
"""The classes whose saved models :func:`tlstd.load` can read, by the name in the file."""
