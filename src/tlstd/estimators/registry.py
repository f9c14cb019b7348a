"""The estimators by name: the one line to add for a new one."""

from __future__ import annotations

from collections.abc import Callable

from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.lstd import LSTD
from tlstd.estimators.tlstd import TLSTD

Factory = Callable[..., LinearEstimator]

ESTIMATORS: dict[str, Factory] = {
    "LSTD": lambda n_features, **options: LSTD(n_features, lambda_=0.7, **options),
    "LSTD (recursive)": lambda n_features, **options: LSTD(n_features, lambda_=0.7, solver="recursive", **options),
    "TLSTD": lambda n_features, **options: TLSTD(n_features, max(1, n_features // 2), lambda_=0.7, **options),
    "TLSTD (full rank)": lambda n_features, **options: TLSTD(n_features, n_features, lambda_=0.7, **options),
    "TLSTD (replacing)": lambda n_features, **options: TLSTD(
        n_features, n_features, lambda_=0.7, trace="replacing", **options
    ),
}
"""Typical instances, made from the number of features; the contract suite runs on each of them."""
