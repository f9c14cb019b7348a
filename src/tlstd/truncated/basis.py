"""Orthonormal bases of [U, S]: a factor and the vectors that wait to be folded into it.

A :class:`Basis` is an orthonormal basis in three parts,

- the r columns of U,
- Q = (S_J - U P_J - E F_J) R_J⁻¹ for the vectors J whose residual against the others is large. It is found through
  the Gram matrix and never formed: all that is stored is small,
- E, explicit columns, for what the Gram matrix cannot resolve: forming inner products first costs ε/δ² of
  orthogonality for a relative residual δ,

and the coordinates of all of S in it. Directions whose residual is nothing but rounding are left out, never
normalised into the basis.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.growing import enlarged, slices
from tlstd.core.qr import orthonormalised, pivoted_qr
from tlstd.core.svd import EPS, solve_triangle
from tlstd.data.kernels import sparse as kernels
from tlstd.truncated.pending_vectors import DenseVectors, PendingVectors, SparseVectors

GRAM_RESOLUTION = 1e-2
"""Smallest relative residual δ that is trusted to the Gram matrix; the ε/δ² = 2e-12 that this may cost in orthogonality
is mended after a compression (``Factors.orthonormalise``)."""

VANISHING = 2e-14
"""Residual of a unit vector below which it is rounding, not a direction."""

DEPENDENT = 1e-13
"""Residual of a unit vector, measured directly, below which it is taken to lie in the span of the others."""

_ROWS, _CACHED = 4096, 512  # of tall arrays, at a time
_NONE: FloatArray = np.zeros((0, 0))


class Basis:
    """An orthonormal basis of [U, S] and the coordinates of S in it; see the module's docstring.

    Parameters
    ----------
    U : (n_U, r), orthonormal columns; rows past n_U count as zero
    block : the vectors S
    picked : the vectors J
    coordinates : (r + |J| + e, k), of S in U, Q and E
    n : number of rows of the space
    E : (n, e), explicit columns, none if left out
    """

    def __init__(
        self,
        U: FloatArray,
        block: PendingVectors,
        picked: IntArray,
        coordinates: FloatArray,
        n: int,
        E: FloatArray | None = None,
    ) -> None:
        self.U, self.block, self.n = U, block, n
        self.picked, self.coordinates = picked, coordinates
        self.E: FloatArray = np.zeros((n, 0)) if E is None else E
        r, m = U.shape[1], picked.size
        mine = coordinates[:, picked]
        self._P_picked, self._R_picked, self._F_picked = mine[:r], mine[r : r + m], mine[r + m :]

    @property
    def size(self) -> int:
        """Number of basis vectors."""
        return int(self.coordinates.shape[0])

    def orthogonality_loss(self, C: FloatArray) -> float:
        """About how far from orthonormal vectors can be whose coordinates C (size, q) in this basis are orthonormal.

        A direction of relative residual δ that was found through the Gram matrix is off by ε/δ², and each vector by
        that times its square share of the direction. Explicit directions lose less.
        """
        r, m = self.U.shape[1], self.picked.size
        shares = C[r : r + m] / self._R_picked.diagonal()[:, None]
        return 4.0 * EPS * (1.0 + float(np.einsum("ij,ij->j", shares, shares).max(initial=0.0)))

    def widened(self, columns: int) -> Basis:
        """A copy with room for the coordinates of so many further vectors."""
        other, size, known = object.__new__(Basis), self.size, self.coordinates.shape[1]
        coordinates = np.zeros((size, known + columns))
        coordinates[:, :known] = self.coordinates
        other.__dict__.update(self.__dict__, coordinates=coordinates)
        return other

    def project(self, X: FloatArray) -> FloatArray:
        """Coordinates (size, q) of the columns of X (n, q)."""
        return self.assemble(self.U.T @ X[: self.U.shape[0]], self.block.dots(X) if self.picked.size else _NONE, X)

    def assemble(self, UtX: FloatArray, StX: FloatArray, X: FloatArray) -> FloatArray:
        """Coordinates of X from its inner products with U and S, and with E."""
        if not self.picked.size and not self.E.shape[1]:
            return UtX
        EtX = self.E[: X.shape[0]].T @ X
        if not self.picked.size:
            return np.concatenate([UtX, EtX])
        residual = StX[self.picked] - self._P_picked.T @ UtX
        if self.E.shape[1]:
            residual -= self._F_picked.T @ EtX
        QtX = solve_triangle(self._R_picked, residual, transposed=True)
        return np.concatenate([UtX, QtX, EtX])

    def split(self, C: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coefficients on U, on S[:, picked] and on E of the vectors with coordinates C (size, q)."""
        r, m = self.U.shape[1], self.picked.size
        if not m and C.flags.c_contiguous:  # as views: products of another layout would be others in the last bit
            return C[:r], C[:0], C[r:]
        on_S = solve_triangle(self._R_picked, C[r : r + m])
        return C[:r] - self._P_picked @ on_S, on_S, C[r + m :] - self._F_picked @ on_S

    def expand(self, C: FloatArray) -> FloatArray:
        """The vectors (n, q) with coordinates C (size, q), by slices of rows. O(n size q)."""
        on_U, on_S, on_E = self.split(C)
        if not self.picked.size and self.U.shape[0] == self.n <= _CACHED:  # at once: small problems are mostly overhead
            Y: FloatArray = self.U @ on_U
            if on_E.shape[0]:
                Y += self.E @ on_E
            return Y
        Y = np.zeros((self.n, C.shape[1]))
        for rows in slices(self.n, _CACHED):
            old = self.U[rows]
            np.matmul(old, on_U, out=Y[rows][: old.shape[0]])
            if on_E.shape[0]:
                Y[rows] += self.E[rows] @ on_E
        if self.picked.size:
            self.block.add_to(Y, self.picked, on_S)
        return Y

    def depends(self, vectors: IntArray, scratch: FloatArray) -> NDArray[np.bool_]:
        """Which vectors of a sparse block lie in the span of U and S_J to ``DEPENDENT``, whatever the Gram matrix says.

        A repeated state, or any dependence among the block's own vectors, is verified on their non-zeros alone.
        Where U takes part, the residual's norm is summed over slices of rows: O(n r u) operations, and no tall array.
        """
        block = self.block
        assert isinstance(block, SparseVectors)
        r = self.U.shape[1]
        C = self.coordinates[:, vectors]
        on_U, on_S, _ = self.split(C)
        inside = np.zeros(vectors.size, dtype=np.bool_)
        sparse = np.linalg.norm(on_U, axis=0) <= DEPENDENT
        if block.head is not None:  # a dense vector takes part
            sparse &= (vectors != 0) & (np.abs(on_S[self.picked == 0]) == 0.0).all(axis=0)
        residuals = np.empty(vectors.size)
        kernels.combination_residuals(
            block.indptr, block.rows, block.vals, vectors, self.picked, on_S, scratch, residuals
        )
        inside[sparse] = residuals[sparse] <= DEPENDENT
        rest = np.flatnonzero(~inside)
        if rest.size and r:
            inside[rest] = self._residual_norms(vectors[rest], on_U[:, rest], on_S[:, rest]) <= DEPENDENT
        return inside

    def _residual_norms(self, vectors: IntArray, on_U: FloatArray, on_S: FloatArray) -> FloatArray:
        """‖s - U on_U - S_J on_S‖ of each vector, a slice of columns at a time."""
        squares = np.zeros(vectors.size)
        width = max(1, self.U.shape[1] // 4)
        for start in range(0, vectors.size, width):
            part = slice(start, start + width)
            X = self.block.columns(vectors[part], self.n)
            self.block.add_to(X, self.picked, -on_S[:, part])
            for rows in slices(self.U.shape[0], _ROWS):
                X[rows] -= self.U[rows] @ on_U[:, part]
            squares[part] = np.einsum("ij,ij->j", X, X)
        return np.sqrt(squares)

    def add_explicit(self, X: FloatArray, columns: IntArray) -> None:
        """Extend the basis by what is left of X (n, u) after projection, and set its coordinates in ``columns``.

        X holds vectors of at most unit length and is overwritten. Projected (twice where Q takes part); a column-
        pivoted Householder QR finds the directions; they are projected again and re-orthonormalised, because a
        direction that is small against the columns it came from inherits their rounding errors; what each correction
        removes is folded back into the coordinates, so that basis times coordinates stays S.
        """
        inside, room = self.project(X), min(self.n - self.size, X.shape[1])
        if self.picked.size:  # Q is orthonormal to ε/δ² only: what it leaves of X once could be taken for a direction
            X -= self.expand(inside)
            C = self.project(X)
            inside += C
        else:
            C = inside
        if room:
            X -= self.expand(C)
            directions, triangle = pivoted_qr(X, VANISHING, room)
        if not (room and triangle.size):  # nothing but what the basis has already
            self.coordinates[:, columns] = inside
            return
        C = self.project(directions)
        directions -= self.expand(C)
        directions, second = orthonormalised(directions)
        inside += C @ triangle
        triangle = second @ triangle
        size = self.size
        coordinates = np.zeros((size + triangle.shape[0], self.coordinates.shape[1]))
        coordinates[:size] = self.coordinates
        coordinates[:size, columns], coordinates[size:, columns] = inside, triangle
        self.coordinates = coordinates
        self.E = np.concatenate([self.E, directions], axis=1)
        self._F_picked = self.coordinates[self.size - self.E.shape[1] :, self.picked]


def sparse_basis(U: FloatArray, block: SparseVectors, scratch: FloatArray, n: int) -> Basis:
    """Orthonormal basis of U and a block of sparse vectors: through the Gram matrix, explicitly where that fails.

    O(k²(r + k)), plus O(n r u) if u vectors depend on U or need the explicit treatment.
    """
    P = block.products("factor", U).T
    if U.shape[1] >= n:  # U spans everything
        return Basis(U, block, np.zeros(0, dtype=np.int64), P, n)
    gram, same_as = block.gram.of(block, n)
    residual = gram - P.T @ P
    is_first = same_as == np.arange(block.count)
    if is_first.all():
        picked, R = _pivoted_cholesky(residual, GRAM_RESOLUTION**2, most=n - U.shape[1])
    else:
        distinct = np.flatnonzero(is_first)
        chosen, R = _pivoted_cholesky(residual[is_first][:, is_first], GRAM_RESOLUTION**2, most=n - U.shape[1])
        picked, R = distinct[chosen], R[:, (np.cumsum(is_first) - 1)[same_as]]
    basis = Basis(U, block, picked, np.vstack([P, R]), n)
    is_open = is_first & (block.norms[: block.count] > 0.0)
    is_open[picked] = False
    unresolved = np.flatnonzero(is_open)
    if unresolved.size and basis.size < n:
        unresolved = unresolved[~basis.depends(unresolved, scratch)]
        width = max(8, U.shape[1] // 2)  # so many tall vectors at a time
        for start in range(0, unresolved.size, width):
            part = unresolved[start : start + width]
            basis.add_explicit(block.columns(part, n), part)
        basis.coordinates = basis.coordinates[:, same_as]
    return basis


def dense_basis(
    U: FloatArray, block: DenseVectors, n: int, *, chunk: int, count: int | None = None, start: Basis | None = None
) -> Basis:
    """Orthonormal basis of U and the first ``count`` (or all) of a block's vectors, all explicit, ``chunk`` at a time.

    Goes on from ``start``, an basis by the block's first vectors (a multiple of ``chunk`` of them), with the same
    result to the bit. O(n k (r + k)).
    """
    basis = start or Basis(U, block, np.zeros(0, dtype=np.int64), np.zeros((U.shape[1], 0)), n)
    known = basis.coordinates.shape[1]
    stop = block.count if count is None else count
    for first in range(known, stop, chunk):
        new = np.arange(first, min(first + chunk, stop))
        basis = basis.widened(new.size)
        basis.add_explicit(block.columns(new, n), new)
    return basis


class GrowingBasis:
    """The basis of U and a block of sparse vectors, one after the other, to read the solution while the buffer fills.

    Vector j is sorted in by what came before it alone, so the basis of the first j vectors is that of the first j - 1
    and at most one direction more: it can be kept from read to read, and is the same to the bit whoever read what
    before. For that, sums over the block are loops of fixed order, and tall vectors end where the vectors so far end,
    not where the features seen by now do.

    Parameters
    ----------
    U : (n_U, r), orthonormal columns
    block : the vectors; those already sorted in must not change
    """

    def __init__(self, U: FloatArray, block: SparseVectors) -> None:
        self.U, self.block = U, block
        self.count = 0  # vectors sorted in
        self._n = U.shape[0]  # rows that they reach
        self._picked: IntArray = np.zeros(0, dtype=np.int64)
        self._n_picked = 0
        self._on_U: FloatArray = np.zeros((0, U.shape[1]))  # coordinates, a row per vector
        self._on_Q: FloatArray = np.zeros((0, 0))
        self._on_E: FloatArray = np.zeros((0, 0))
        self._E: FloatArray = np.zeros((0, 0))

    def basis(self, scratch: FloatArray, n: int) -> Basis:
        """The basis of U and all vectors that the block has by now, over n rows."""
        block, first = self.block, self.count
        if first < block.count:
            if block.count > self._picked.size:
                size = min(block.norms.size, max(64, 2 * block.count))
                self._picked, self._on_U = enlarged(self._picked, size), enlarged(self._on_U, size)
                self._on_Q, self._on_E = enlarged(self._on_Q, size, size), enlarged(self._on_E, size)
            self._on_U[first : block.count] = block.products("factor", self.U)[first:]
            gram, same_as = block.gram.of(block, n)
            for j in range(first, block.count):
                self._sort_in(j, int(same_as[j]), gram, scratch)
            self.count = block.count
        k, m = self.count, self._n_picked
        coordinates = np.concatenate([self._on_U[:k], self._on_Q[:k, :m], self._on_E[:k]], axis=1).T
        if self._E.shape[1]:
            self._E = enlarged(self._E, n)
        return Basis(self.U, block, self._picked[:m].copy(), coordinates, n, self._E if self._E.shape[1] else None)

    def _sort_in(self, j: int, same_as: int, gram: FloatArray, scratch: FloatArray) -> None:
        block = self.block
        if same_as != j:
            for coordinates in (self._on_U, self._on_Q, self._on_E):
                coordinates[j] = coordinates[same_as]
            return
        rows = block.rows[block.indptr[j] : block.indptr[j + 1]]
        self._n = max(self._n, int(rows.max(initial=-1)) + 1)
        if j == 0 and block.head is not None:
            self._n = max(self._n, block.head.size)
        if self._on_E.shape[1]:
            n, e = self._E.shape
            kernels.dots(block.indptr, block.rows, block.vals, j, j + 1, self._E, n, e, self._on_E)
        m = self._n_picked
        left = kernels.sort_in(j, self._picked, m, gram, self._on_U, self._on_E, self._on_Q)
        if block.norms[j] == 0.0:
            return
        on_S = self._on_vectors(self._on_Q[j, :m])
        # the direction is (s - S_J on_S - ...)/√left: an error ε of inner products is multiplied by its square length
        if left > GRAM_RESOLUTION**2 * (1.0 + float(on_S @ on_S)) and self._size < self._n:
            self._on_Q[j, m] = np.sqrt(left)
            self._picked[m] = j
            self._n_picked += 1
        else:
            self._measure(j, on_S, scratch)

    @property
    def _size(self) -> int:
        return int(self.U.shape[1] + self._n_picked + self._on_E.shape[1])

    def _measure(self, j: int, on_S: FloatArray, scratch: FloatArray) -> None:
        """Form what is left of vector j; if it is more than rounding, it is a new direction."""
        block = self.block
        vector, m = np.array([j]), self._n_picked
        head_takes_part = block.head is not None and (j == 0 or bool(on_S[self._picked[:m] == 0].any()))
        if not (head_takes_part or self._on_U[j].any() or self._on_E[j].any()):  # non-zeros only
            residual = np.empty(1)
            vectors = block.indptr, block.rows, block.vals
            kernels.combination_residuals(*vectors, vector, self._picked[:m], on_S[:, None], scratch, residual)
            if residual[0] <= DEPENDENT:
                return
        self._E = enlarged(self._E, self._n)
        x = block.columns(vector, self._n)[:, 0]
        self._subtract(x, self._on_U[j], self._on_Q[j, :m], self._on_E[j])
        if np.sqrt(x @ x) <= DEPENDENT:
            return
        x = block.columns(vector, self._n)[:, 0]
        coordinates = self._project_away(x)
        again = self._project_away(x)
        u, q, e = (a + b for a, b in zip(coordinates, again, strict=True))
        length = float(np.sqrt(x @ x))
        if length > VANISHING and self._size < self._n:
            x /= length
            again = self._project_away(x)
            u, q, e = (a + length * b for a, b in zip((u, q, e), again, strict=True))
            rest = float(np.sqrt(x @ x))
            n_rows, n_E = self._E.shape
            self._E = enlarged(self._E, n_rows, n_E + 1)
            self._E[: x.size, n_E] = x / rest
            self._on_E = enlarged(self._on_E, self._on_E.shape[0], n_E + 1)
            e = np.append(e, length * rest)
        self._on_U[j], self._on_Q[j, :m], self._on_E[j] = u, q, e

    def _project_away(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coordinates of x (n,) in U, Q and E; x loses them, in place."""
        u: FloatArray = self.U.T @ x[: self.U.shape[0]]
        e: FloatArray = self._E[: self._n].T @ x
        q = np.zeros(self._n_picked)
        products = self.block.dots(x[:, None])[self._picked[: q.size], 0]
        kernels.project_on_picked(self._picked, products, u, e, self._on_U, self._on_E, self._on_Q, q)
        self._subtract(x, u, q, e)
        return u, q, e

    def _subtract(self, x: FloatArray, u: FloatArray, q: FloatArray, e: FloatArray) -> None:
        """x (n,) -= U u + Q q + E e, in place."""
        on_S = self._on_vectors(q)
        u, e = u.copy(), e.copy()
        kernels.subtract_picked(self._picked, on_S, self._on_U, u)
        kernels.subtract_picked(self._picked, on_S, self._on_E, e)
        x[: self.U.shape[0]] -= self.U @ u
        if e.size:
            x -= self._E[: self._n] @ e
        self.block.add_to(x[:, None], self._picked[: q.size], -on_S[:, None])

    def _on_vectors(self, q: FloatArray) -> FloatArray:
        """Coefficients on S_J of Q q."""
        on_S = q.copy()
        kernels.back_substitute(self._picked, self._on_Q, on_S)
        return on_S


def _pivoted_cholesky(G: FloatArray, smallest: float, most: int) -> tuple[IntArray, FloatArray]:
    """Pivots J and R (|J|, k) with G ≈ RᵀR, exact on J, stopping when no remaining diagonal exceeds ``smallest``."""
    k = G.shape[0]
    # dpstrf stops at diagonals <= tol; it needs at least one positive diagonal to start
    if k == 0 or G.diagonal().max() <= smallest:
        return np.zeros(0, dtype=np.int64), np.zeros((0, k))
    factor, pivots, rank, _ = dpstrf(G, tol=smallest, lower=0)
    rank = min(int(rank), most)
    order = pivots.astype(np.int64) - 1
    R = np.zeros((rank, k))
    R[:, order] = np.triu(factor[:rank])
    return order[:rank], R
