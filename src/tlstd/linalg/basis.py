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

import copy

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from tlstd.kernels import sparse as kernels
from tlstd.linalg.arrays import slices
from tlstd.linalg.buffered_vectors import BufferedVectors, DenseVectors, SparseVectors
from tlstd.linalg.qr import orthonormalised, pivoted_qr
from tlstd.linalg.svd import EPS, solve_triangle
from tlstd.types import FloatArray, IntArray

GRAM_RESOLUTION = 1e-2
"""Smallest relative residual δ that is trusted to the Gram matrix; the ε/δ² = 2e-12 that this may cost in orthogonality
is mended after a compression (``Factors.orthonormalise``)."""

VANISHING = 2e-14
"""Residual of a unit vector below which it is rounding, not a direction."""

DEPENDENT = 1e-13
"""Residual of a unit vector, measured directly, below which it is taken to lie in the span of the others."""

_ROWS, _CACHED = 4096, 512  # of tall arrays, at a time


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
        block: BufferedVectors,
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
        other = copy.copy(self)
        other.coordinates = np.hstack([self.coordinates, np.zeros((self.size, columns))])
        return other

    def project(self, X: FloatArray) -> FloatArray:
        """Coordinates (size, q) of the columns of X (n, q)."""
        StX = self.block.dots(X) if self.picked.size else np.zeros((self.block.count, X.shape[1]))
        return self.assemble(self.U.T @ X[: self.U.shape[0]], StX, X)

    def assemble(self, UtX: FloatArray, StX: FloatArray, X: FloatArray) -> FloatArray:
        """Coordinates of X from its inner products with U and S, and with E."""
        EtX = self.E[: X.shape[0]].T @ X
        residual = StX[self.picked] - self._P_picked.T @ UtX
        if self.E.shape[1]:
            residual -= self._F_picked.T @ EtX
        QtX = solve_triangle(self._R_picked, residual, transposed=True)
        return np.vstack([UtX, QtX, EtX])

    def split(self, C: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coefficients on U, on S[:, picked] and on E of the vectors with coordinates C (size, q)."""
        r, m = self.U.shape[1], self.picked.size
        on_S = solve_triangle(self._R_picked, C[r : r + m])
        return C[:r] - self._P_picked @ on_S, on_S, C[r + m :] - self._F_picked @ on_S

    def expand(self, C: FloatArray) -> FloatArray:
        """The vectors (n, q) with coordinates C (size, q), by slices of rows. O(n size q)."""
        on_U, on_S, on_E = self.split(C)
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
        inside = self.project(X)
        X -= self.expand(inside)
        if self.picked.size:  # Q is orthonormal to ε/δ² only: what it leaves of X once could be taken for a direction
            C = self.project(X)
            X -= self.expand(C)
            inside += C
        directions, triangle = self._directions(X)
        C = self.project(directions)
        directions -= self.expand(C)
        if triangle.shape[0]:
            directions, second = orthonormalised(directions)
            inside += C @ triangle
            triangle = second @ triangle
        self.coordinates = np.vstack([self.coordinates, np.zeros((triangle.shape[0], self.coordinates.shape[1]))])
        self.coordinates[:, columns] = np.vstack([inside, triangle])
        self.E = np.hstack([self.E, directions])
        self._F_picked = self.coordinates[self.size - self.E.shape[1] :, self.picked]

    def _directions(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Q (n, e) orthonormal and R (e, u) with X ≈ Q R, without the directions that are rounding only."""
        room = min(self.n - self.size, X.shape[1])
        if room == 0:
            return np.zeros((self.n, 0)), np.zeros((0, X.shape[1]))
        return pivoted_qr(X, VANISHING, room)


def sparse_basis(U: FloatArray, block: SparseVectors, scratch: FloatArray, n: int) -> Basis:
    """Orthonormal basis of U and a block of sparse vectors: through the Gram matrix, explicitly where that fails.

    O(k²(r + k)), plus O(n r u) if u vectors depend on U or need the explicit treatment.
    """
    P = block.products("factor", U).T
    if U.shape[1] >= n:  # U spans everything
        return Basis(U, block, np.zeros(0, dtype=np.int64), P, n)
    gram, same_as = block.gram(n)
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
