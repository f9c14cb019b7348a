"""Task: what the first directions of two subspaces can say of b, of the values and of LSTD's solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tlstd.core.arrays import FloatArray
from tlstd.core.threads import one_thread
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd_lab.problems import problem, stream

CUT_OFF = 1e-4
"""Of the singular values that LSTD's solution leaves out, relative to the largest."""


def directions(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """Shares of squared lengths that the first r directions can make up for, r as in ``dimensions``.

    Settings: ``problem`` (of some thousand features at most), ``n_samples``, ``lambda_``, ``dimensions``.

    Columns ``singular_*`` are of the leading right singular vectors of A, ``krylov_*`` of the space b, Ab, A²b, …:
    ``b``, the share of b that A times the directions reaches; ``truth``, of the true values at the problem's states,
    that functions in the directions reach; ``solution``, the same of LSTD's predictions there.
    """
    made = problem(settings["problem"])
    model = KrylovLSTD(made.features.n_features, lambda_=settings["lambda_"], dimension=1)
    model.update_many(stream(settings["problem"], settings["n_samples"], seed))
    operator, ids = model.operator(), model.seen_ids
    A, b = operator.matvec(np.eye(operator.n)), operator.b()[:, 0]
    X = (made.X if isinstance(made.X, np.ndarray) else made.X.toarray())[:, ids]
    dimensions = [m for m in settings["dimensions"] if m <= operator.n]
    with one_thread():
        U, sigma, Vt = scipy.linalg.svd(A)
        kept = sigma > CUT_OFF * sigma[0]
        solution = X @ (Vt[kept].T @ ((U[:, kept].T @ b) / sigma[kept]))
        found: dict[str, FloatArray] = {}
        for name, basis in (("singular", Vt.T), ("krylov", krylov_basis(A, b, max(dimensions)))):
            found |= {
                f"{name}_b": shares(A @ basis, b, dimensions),
                f"{name}_truth": shares(X @ basis, made.truth, dimensions),
                f"{name}_solution": shares(X @ basis, solution, dimensions),
            }
    return found


def krylov_basis(A: FloatArray, b: FloatArray, dimension: int) -> FloatArray:
    """An orthonormal basis of b, Ab, …, one column a direction; fewer columns if the space ends before.

    Example
    -------
    >>> krylov_basis(np.diag([1.0, 2.0, 2.0]), np.ones(3), 3).shape
    (3, 2)
    """
    columns: list[FloatArray] = []
    v, size = b, float(np.linalg.norm(b))
    while len(columns) < dimension:
        for _ in range(2):
            for q in columns:
                v = v - q * (q @ v)
        length = float(np.linalg.norm(v))
        if length <= 1e-13 * size:
            break
        columns.append(v / length)
        v = A @ columns[-1]
        size = float(np.linalg.norm(v))
    return np.array(columns).T


def shares(M: FloatArray, y: FloatArray, dimensions: list[int]) -> FloatArray:
    """Share of ‖y‖² within the first r columns of M, for each r; all columns where there are fewer.

    Example
    -------
    >>> shares(np.eye(3), np.array([3.0, 4.0, 0.0]), [1, 2, 3])
    array([0.36, 1.  , 1.  ])
    """
    found = []
    for r in dimensions:
        fit = np.linalg.lstsq(M[:, :r], y, rcond=1e-12)[0]
        found.append(1.0 - float(np.sum((y - M[:, :r] @ fit) ** 2) / np.sum(y**2)))
    return np.array([round(max(share, 0.0), 12) for share in found])
