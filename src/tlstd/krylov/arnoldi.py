"""Least residuals over Krylov spaces (GMRES) from w = 0, for every dimension of one run and several systems at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import hypot, sqrt
from weakref import WeakMethod

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.svd import EPS, solve_triangle
from tlstd.core.threads import one_thread

BREAKDOWN = 10.0 * EPS
"""What is left of A q beside the basis is rounding below this share of the longest A q so far."""

_FIRST = 20  # dimensions for which a basis has room at first; what is not used of it takes no memory

Product = Callable[[FloatArray, Sequence[int]], FloatArray]
"""``product(V, columns)``: column i of the result is A_c V[:, i] with the system c = ``columns[i]``."""


def weakly(method: Product) -> Product:
    """A method for what its own object holds: no circle, in which large arrays wait for the garbage collector."""
    held = WeakMethod(method)

    def product(V: FloatArray, columns: Sequence[int]) -> FloatArray:
        alive = held()
        assert alive is not None  # who holds this is asked
        return alive(V, columns)

    return product


class KrylovPath:
    """An orthonormal basis Q of the Krylov space K_m(A, b), with A Q_mᵀ = Q_{m+1}ᵀ H, and the solutions in it.

    Made from b, and longer by one dimension with every :meth:`extend`. The solution of dimension m is the w = Q_mᵀ y
    of least ‖b - A w‖: y = argmin ‖ ‖b‖ e₁ - H y ‖, by a QR decomposition of H that is kept by Givens rotations, so
    that the solutions of all dimensions up to m can be read at any time.

    Orthogonality is kept to rounding by two passes of Gram-Schmidt. What remains of A q after them may be rounding
    (``BREAKDOWN``), or of the residual: then the solution is exact, and the path is ``finished``.

    Cost: O(n·m) for a dimension and O(n·m) memory.
    """

    def __init__(self, b: FloatArray) -> None:
        self.dimension = 0
        """m."""
        self.length = norm(b)
        """‖b‖."""
        self.finished = self.length == 0.0
        self._Q: FloatArray = np.empty((_FIRST + 1, b.size))
        self._H: FloatArray = np.zeros((_FIRST + 1, _FIRST))
        self._R: FloatArray = np.zeros((_FIRST, _FIRST))
        self._g: FloatArray = np.zeros(_FIRST + 1)
        self._rotations: list[tuple[float, float]] = []
        self._singular = False
        self._longest = 0.0
        self._residuals = [self.length]
        self._n_vectors = 0 if self.finished else 1
        if not self.finished:
            np.divide(b, self.length, out=self._Q[0])
            self._g[0] = self.length

    @property
    def Q(self) -> FloatArray:
        """The basis, one vector a row: (m + 1, n), or (m, n) if the space is invariant. A view."""
        Q: FloatArray = self._Q[: self._n_vectors]
        return Q

    @property
    def H(self) -> FloatArray:
        """A in the basis: (m + 1, m), upper Hessenberg. A view."""
        return self._H[: self.dimension + 1, : self.dimension]

    @property
    def direction(self) -> FloatArray:
        """The vector q that A is to be multiplied with next."""
        q: FloatArray = self._Q[self.dimension]
        return q

    @property
    def residuals(self) -> FloatArray:
        """‖b - A w‖ of the solutions of dimension 0, …, m."""
        return np.array(self._residuals)

    def extend(self, Aq: FloatArray) -> None:
        """Add a dimension, given A times :attr:`direction` (which is changed)."""
        m = self.dimension
        self._reserve(m + 1)
        Q, w, room = self._Q[: m + 1], Aq, self._Q[m + 1]
        self._longest = max(self._longest, norm(w))
        h = Q @ w
        w -= np.matmul(h, Q, out=room)
        again = Q @ w
        w -= np.matmul(again, Q, out=room)
        h += again
        rest = norm(w)
        finished = rest <= BREAKDOWN * self._longest
        self._H[: m + 1, m] = h
        if not finished:
            self._H[m + 1, m] = rest
            np.divide(w, rest, out=room)
            self._n_vectors += 1
        self._rotate(h, 0.0 if finished else rest)
        self.dimension = m + 1
        self.finished = finished or self._solved()

    def _solved(self) -> bool:
        """Whether the residual is what rounding leaves of it. Any further direction would be rounding too."""
        if self._residuals[-1] > 1e-3 * self.length:
            return False
        reached = norm(self.coordinates(self.dimension))
        return self._residuals[-1] <= EPS * (10.0 * self.length + self._longest * reached)

    def _rotate(self, column: FloatArray, rest: float) -> None:
        """Add a column with ``rest`` below it to the QR decomposition of H."""
        m, h = self.dimension, column.tolist()
        for i, (c, s) in enumerate(self._rotations):
            h[i], h[i + 1] = c * h[i] + s * h[i + 1], c * h[i + 1] - s * h[i]
        r, g = hypot(h[m], rest), float(self._g[m])
        self._singular = r <= BREAKDOWN * self._longest
        if self._singular:  # this direction, the last one, cannot make the residual smaller
            c, s, h[m] = 0.0, -1.0, 0.0
        else:
            c, s, h[m] = h[m] / r, rest / r, r
        self._rotations.append((c, s))
        self._R[: m + 1, m] = h
        self._g[m], self._g[m + 1] = c * g, -s * g
        self._residuals.append(abs(s * g))

    def coordinates(self, dimension: int) -> FloatArray:
        """y of the solution of least residual, as long as the dimensions that there are up to ``dimension``."""
        m = min(dimension, self.dimension)
        used = m - 1 if self._singular and m == self.dimension else m
        y = np.zeros(m)
        y[:used] = solve_triangle(self._R[:used, :used], self._g[:used, None])[:, 0]
        return y

    def galerkin(self, dimension: int) -> FloatArray:
        """y of the solution whose residual is orthogonal to the basis, for comparison; it may not exist (NaN)."""
        m = min(dimension, self.dimension)
        right = np.zeros(m)
        right[:1] = self.length
        try:
            return np.linalg.solve(self._H[:m, :m], right).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            return np.full(m, np.nan)

    def solution(self, dimension: int) -> FloatArray:
        """w (n,) of least residual in the first ``dimension`` dimensions, or in all that there are."""
        y = self.coordinates(dimension)
        w: FloatArray = y @ self._Q[: y.size]
        return w

    def projection(self, dimension: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Q (k, n), Y (k, m), R (m, m) and c (m,): the solution of least residual is Q_mᵀy with R y = c.

        Y R is the QR decomposition of H, so that W = QᵀY is an orthonormal basis of A Q_mᵀ, R = WᵀA Q_mᵀ and c = Wᵀb.
        """
        m = min(dimension, self.dimension)
        if self._singular and m == self.dimension:
            m -= 1
        k = min(m + 1, self._n_vectors) if m else 0
        Y, R = np.linalg.qr(self._H[:k, :m])
        return self._Q[:k], Y, R, self.length * Y[0] if m else np.zeros(0)

    def _reserve(self, dimension: int) -> None:
        """Make room for so many dimensions."""
        old = self._R.shape[0]
        if dimension <= old:
            return
        size = max(dimension, min(2 * old, old + 32))
        Q, H, R = np.empty((size + 1, self._Q.shape[1])), np.zeros((size + 1, size)), np.zeros((size, size))
        Q[: old + 1], H[: old + 1, :old], R[:old, :old] = self._Q, self._H, self._R
        self._Q, self._H, self._R = Q, H, R
        self._g = np.concatenate([self._g, np.zeros(size - old)])


class Arnoldi:
    """Krylov paths of several systems A_c w = b_c in lock-step: one product a dimension for all of them.

    Parameters
    ----------
    product : callable
        ``product(V, columns)``, see ``Product``.
    B : (n, k) array
        The right-hand sides, one column a system.

    Example
    -------
    >>> A = np.diag([1.0, 2.0, 3.0])
    >>> arnoldi = Arnoldi(lambda V, columns: A @ V, np.ones((3, 1)))
    >>> arnoldi.extend(3)
    >>> bool(np.abs(A @ arnoldi.paths[0].solution(3) - 1.0).max() < 1e-14)
    True
    """

    def __init__(self, product: Product, B: FloatArray) -> None:
        self.product = product
        with one_thread():
            self.paths = [KrylovPath(np.ascontiguousarray(B[:, c])) for c in range(B.shape[1])]

    def extend(self, dimension: int, only: Sequence[int] | None = None) -> None:
        """Make all paths, or ``only`` these, ``dimension`` dimensions long, unless they finish before."""
        chosen = range(len(self.paths)) if only is None else only
        with one_thread():
            while True:
                growing = [c for c in chosen if not self.paths[c].finished and self.paths[c].dimension < dimension]
                if not growing:
                    return
                shortest = min(self.paths[c].dimension for c in growing)
                columns = [c for c in growing if self.paths[c].dimension == shortest]
                V = np.stack([self.paths[c].direction for c in columns], axis=1)
                products = self.product(V, columns)
                for i, c in enumerate(columns):
                    self.paths[c].extend(np.ascontiguousarray(products[:, i]))

    def solutions(self, dimension: int | Sequence[int]) -> FloatArray:
        """The solutions of least residual of all systems, (n, k), of one dimension or of one for each."""
        dimensions = [dimension] * len(self.paths) if isinstance(dimension, int) else dimension
        with one_thread():
            return np.stack([path.solution(m) for path, m in zip(self.paths, dimensions, strict=True)], axis=1)


def norm(v: FloatArray) -> float:
    """‖v‖, also where squares would overflow or vanish."""
    square = float(np.vdot(v, v))  # which does not warn
    if 1e-200 < square < 1e200:
        return sqrt(square)
    largest = float(np.abs(v).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    scaled = v / largest
    return largest * sqrt(float(scaled @ scaled))
