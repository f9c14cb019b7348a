"""Shared code of the estimators that are made of others: how their parts are saved and made again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tlstd.core.file_format import Saved
from tlstd.errors import StateError
from tlstd.estimators.base import LinearEstimator


def made_from(model: LinearEstimator) -> list[Any]:
    """Class and parameters, as JSON can hold them."""
    return [type(model).__name__, model._parameters()]


def fresh_part(
    cls: type[LinearEstimator],
    role: str,
    parameters: Mapping[str, Any],
    saved: Saved,
    classes: Mapping[str, type[LinearEstimator]],
) -> LinearEstimator:
    """A new estimator from what :func:`made_from` wrote under ``role``, which is not of the class ``cls`` itself."""
    made = parameters.get(role)
    if not (isinstance(made, list) and len(made) == 2 and isinstance(made[1], dict)):
        raise StateError(f"its {role} estimator is not a class with parameters")
    if not isinstance(made[0], str) or made[0] not in classes or classes[made[0]] is cls:
        raise StateError(f"its {role} estimator is of class {str(made[0])[:40]!r}, which it cannot be")
    return classes[made[0]]._fresh(made[1], saved, classes)
