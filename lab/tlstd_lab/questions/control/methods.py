"""The methods that are compared: least squares of three kinds in policy iteration, and sigma points."""

from __future__ import annotations

from typing import Any

from tlstd_lab.chart import COLOURS

RIDGES = (1e-12, 1e-9, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
Method = dict[str, Any]

LOGS: dict[str, Method] = {
    "LSTD": {"estimators": [{"class": "LSTD", "lambda_": 0.0, "ridge": ridge} for ridge in RIDGES]},
    "t-LSTD": {
        "estimators": [{"class": "TLSTD", "lambda_": 0.0, "rank": 120, "rcond": 1e-4}],
        "max_iterations": 5,
    },
    "Krylov LSTD": {
        "estimators": [{"class": "KrylovLSTD", "lambda_": 0.0, "dimension": 60, "ridge": ridge} for ridge in RIDGES[3:]]
    },
}
"""From logs of random actions: regularised more and more until the iteration converges. t-LSTD has one setting."""
FIRST_SEED = 100
"""Of what is shown from logs and on the pendulum: features, logs' sizes and t-LSTD's setting were chosen on others."""


def shown(runs: int) -> range:
    """Seeds of so many reported runs."""
    return range(FIRST_SEED, FIRST_SEED + runs)


def _literal(**estimator: Any) -> Method:
    """As published: no regularisation beyond rounding, values about 0, and the last policy."""
    return {"estimators": [estimator | {"lambda_": 0.0}], "center": False, "judge": "last"}


LITERAL: dict[str, Method] = {
    "LSTD": _literal(**{"class": "LSTD", "rcond": 1e-10}),
    "t-LSTD": _literal(**{"class": "TLSTD", "rank": 24, "rcond": 1e-10}),
    "Krylov LSTD": _literal(**{"class": "KrylovLSTD", "dimension": 30}),
    "sigma points": {"about": "mean", "ridge": 1e-10, "center": False},
}
"""On LSPI's pendulum, with its 30 features."""

COLOUR = COLOURS | {"sigma points": "#CC79A7", "sigma points of second moments": "#882255"}
MARKER = {"LSTD": "s", "t-LSTD": "o", "Krylov LSTD": "P", "sigma points": "^", "sigma points of second moments": "v"}
