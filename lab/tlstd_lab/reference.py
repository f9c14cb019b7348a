"""The paper's Algorithms 1-4 in short, dense NumPy, corrected: the tests' oracle, the benchmarks' baseline.

Gehring, Pan and White, "Incremental Truncated LSTD" (2016): Algorithm 1 in the text, 2-4 in its appendix.
``as_printed=True`` runs what is printed, so that a test can show how it fails. Letters are the paper's.
Left out on purpose: sparse vectors, several targets, and every trick that hides the algorithm.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from tlstd.errors import InvalidInputError, InvalidParameterError

Array: TypeAlias = NDArray[np.float64]
Svd: TypeAlias = tuple[Array, Array, Array]  # U, sigma, V
RotatedSvd: TypeAlias = tuple[Array, Array, Array, Array, Array]  # U, sigma, V, L, R
Stores: TypeAlias = tuple[Array | None, Array | None]  # room in which U and V grow without being copied

DROP = 1e-13  # a residual below this fraction of its vector is rounding noise: no direction of the basis
CAREFUL = 1e-2  # below this |R_ii|, Q = P R^-1 loses orthogonality against U, and has to be projected again
DRIFT = 5e-14  # max|U'U - I| at which the factors are orthonormalised again
PRINTED_EPSILON = 1e-5  # Algorithm 3's absolute tolerance


def update_svd_batch(
    U: Array, sigma: Array, V: Array, Z: Array, D: Array, rank: int, *, as_printed: bool = False
) -> Svd:
    """Return the SVD of U diag(sigma) V' + Z D', cut to `rank`: the paper's Algorithm 2.

    Parameters: U, V (n_features, c) orthonormal; sigma (c,); Z, D (n_features, k), weights included. c = 0 is the
    empty start. Returns U, V (n_features, c') and sigma (c',) descending, c' <= rank.
    Cost: O(n_features (c + k)^2 + (c + k)^3) time, O(n_features (c + k)) memory.
    Departures: truncates, which the printed one forgets; projects twice; drops the directions whose residual
    vanishes; re-orthonormalises U and V, with the R's folded back into sigma, when their rounding has piled up.
    """
    if as_printed:
        return _batch_as_printed(U, sigma, V, Z, D)
    U, sigma, V = _batch(U, sigma, V, Z, D, rank)
    return U, sigma[:rank], V


def update_svd_one(
    U: Array,
    sigma: Array,
    V: Array,
    L: Array,
    R: Array,
    z: Array,
    d: Array,
    rank: int,
    *,
    truncate: bool,
    as_printed: bool = False,
) -> RotatedSvd:
    """Return the factors of A + z d' for A = U L diag(sigma) R' V': the paper's Algorithm 3.

    Parameters: U (n_features, c_u), V (n_features, c_v), L (c_u, c_u), R (c_v, c_v) orthogonal;
    sigma (min(c_u, c_v),), on the diagonal of a c_u x c_v matrix; z, d (n_features,), weight included.
    `truncate` folds L and R into U and V, and cuts to `rank`. Returns the new U, sigma, V, L, R.
    Cost: O(n_features c + c^3) time; with `truncate` O(n_features c^2) more.
    Departures: the tolerance is relative and tested *before* K uses the norm; a vanishing p or q is dropped
    (alone if need be, so that K is rectangular); projects twice; the caller says when to truncate.
    """
    if as_printed:
        return _one_as_printed((U, sigma, V, L, R), z, d, rank)
    U, sigma, V, L, R = _one((U, sigma, V, L, R), z, d, rank, truncate)
    return U, sigma[:rank] if truncate else sigma, V, L, R


def compute_weights(
    U: Array,
    sigma: Array,
    V: Array,
    b: Array,
    *,
    rank: int,
    rcond: float,
    L: Array | None = None,
    R: Array | None = None,
) -> Array:
    """Return w = V R diag(sigma)^+ L' U' b: the paper's Algorithm 4.

    Inverts the leading `rank` singular values at most, of these the ones above rcond * sigma[0] (as printed: 0.01);
    w = 0 if there are none. b, and so w: (n_features,) or (n_features, m). L, R: identity if not given.
    Cost: O(n_features c) time. No departure.
    """
    n = int(np.count_nonzero(sigma[:rank] > rcond * sigma[:1]))
    b_tilde = U.T @ b
    left = b_tilde[:n] if L is None else L[:, :n].T @ b_tilde
    scaled = (left.T / sigma[:n]).T
    w: Array = V[:, :n] @ scaled if R is None else V @ (R[:, :n] @ scaled)
    return w


class ReferenceTLSTD:
    """t-LSTD(λ) on dense vectors, the paper's Algorithm 1, with k = `rank` (`mini_batch`) or k = 1.

    A = (1/T) Σ z d' and b = (1/T) Σ z reward, or with constant `beta` Σ beta (1 - beta)^(T-i) z_i d_i', cut to `rank`
    after every `rank` samples in both modes (the printed "grown to 2r", when no direction is dropped), so that
    both are one algorithm. With `mini_batch` the model changes at the ends of buffers, b included; else at every
    sample. Cost a sample: O(n_features rank), for k = 1 plus O(rank^3); memory O(n_features rank).
    Departures: a block of k samples after t enters A and b as t/(t+k) A + 1/(t+k) Σ z d' (printed: β = 1/(t+k),
    both on D and again as its root on Z and D; decay 1 - β; t from 1; b at every sample).
    """

    def __init__(
        self,
        n_features: int,
        rank: int,
        *,
        lambda_: float,
        mini_batch: bool,
        rcond: float = 0.01,
        beta: float | None = None,
        as_printed: bool = False,
    ) -> None:
        if n_features < 1 or rank < 1:
            raise InvalidParameterError(f"n_features={n_features} and rank={rank} must be at least 1")
        if not (0 <= lambda_ <= 1 and 0 <= rcond < 1):
            raise InvalidParameterError(f"lambda_={lambda_} must be in [0, 1], and rcond={rcond} in [0, 1)")
        if beta is not None and not 0 < beta < 1:
            raise InvalidParameterError(f"beta={beta} must be in (0, 1), or None for the running average")
        self.n_features, self.rank, self.lambda_, self.mini_batch = n_features, rank, lambda_, mini_batch
        self.rcond, self.beta, self.as_printed = rcond, beta, as_printed
        self.n_updates = 0
        self.truncation_gaps: list[float] = []
        """sigma_r / sigma_{r+1} at the end of each `rank` samples; inf where nothing was cut. Empty as printed."""
        empty, none = np.zeros((n_features, 0)), np.zeros((0, 0))
        self._factors: RotatedSvd = empty, np.zeros(0), empty, none, none
        self._z, self._b = np.zeros(n_features), np.zeros(n_features)
        self._k = rank if mini_batch else 1
        self._Z, self._D = np.zeros((2, self._k, n_features)).transpose(0, 2, 1)
        self._rewards = np.zeros(self._k)
        columns = 0 if mini_batch or as_printed else 2 * rank
        self._stores: Stores = np.empty((columns, n_features)), np.empty((columns, n_features))
        self._weights: Array | None = None

    def update(
        self, x: Array, reward: float, x_next: Array, *, discount: float, trace_discount: float, rho: float = 1.0
    ) -> None:
        """Learn from one transition: z = rho (trace_discount λ z + x), d = x - discount x_next."""
        if x.shape != (self.n_features,) or x_next.shape != (self.n_features,):
            raise InvalidInputError(f"x {x.shape}, x_next {x_next.shape}: both must be ({self.n_features},)")
        z = rho * (trace_discount * self.lambda_ * self._z + x)
        d = x - discount * x_next
        if not (np.isfinite(z).all() and np.isfinite(d).all() and np.isfinite(reward)):
            raise InvalidInputError(f"transition {self.n_updates} is not finite; the model is unchanged")
        self._z = z
        i = self.n_updates % self._k
        self._Z[:, i], self._D[:, i], self._rewards[i] = z, d, reward
        self.n_updates += 1
        if self.as_printed:
            self._update_as_printed(i)
        elif i + 1 == self._k:
            self._update_block()

    def _update_block(self) -> None:
        decay, gains = self._sample_weights()
        Z, D, full = self._Z * gains, self._D, self.n_updates % self.rank == 0
        U, sigma, V, L, R = self._factors
        sigma = decay * sigma
        self._b = decay * self._b + Z @ self._rewards
        if self.mini_batch:
            U, sigma, V = _batch(U, sigma, V, Z, D, self.rank)
            L = R = np.eye(U.shape[1])
        else:
            U, sigma, V, L, R = _one((U, sigma, V, L, R), Z[:, 0], D[:, 0], self.rank, full, self._stores)
        if full:
            kept, lost = np.append(sigma, np.zeros(self.rank + 1))[self.rank - 1 : self.rank + 1]
            self.truncation_gaps.append(float(kept / lost) if lost > 0 else np.inf)
            sigma = sigma[: self.rank]
        self._factors, self._weights = (U, sigma, V, L, R), None

    def _sample_weights(self) -> tuple[float, Array]:
        """The old factors' weight, and those of the last k samples."""
        k, t = self._k, self.n_updates
        if self.beta is None:
            return (t - k) / t, np.full(k, 1 / t)
        return (1 - self.beta) ** k, self.beta * (1 - self.beta) ** np.arange(k - 1.0, -1.0, -1.0)

    def _update_as_printed(self, i: int) -> None:
        k = self._k
        t = 1 + (self.n_updates - 1) // k * k
        beta = self.beta if self.beta is not None else 1 / (t + k)
        self._D[:, i] *= beta
        self._b = (1 - beta) * self._b + beta * self._rewards[i] * self._z
        self._weights = None
        if i + 1 < k:
            return
        Z, D = np.sqrt(beta) * self._Z, np.sqrt(beta) * self._D
        U, sigma, V, L, R = self._factors
        sigma = (1 - beta) * sigma
        if self.mini_batch:
            U, sigma, V = _batch_as_printed(U, sigma, V, Z, D)
            self._factors = U, sigma, V, np.eye(len(sigma)), np.eye(len(sigma))
        else:
            self._factors = _one_as_printed((U, sigma, V, L, R), Z[:, 0], D[:, 0], self.rank)

    @property
    def weights(self) -> Array:
        """The solution w (n_features,), by Algorithm 4; solved on access, kept until the model changes."""
        if self._weights is None:
            U, sigma, V, L, R = self._factors
            self._weights = compute_weights(U, sigma, V, self._b, rank=self.rank, rcond=self.rcond, L=L, R=R)
            self._weights.setflags(write=False)
        return self._weights

    @property
    def singular_values(self) -> Array:
        """The singular values held, descending; with k = 1 up to 2 `rank` of them between truncations."""
        return self._factors[1]

    sigma = singular_values

    @property
    def U(self) -> Array:
        """The left singular vectors (n_features, c), L folded in."""
        U, sigma, _, L, _ = self._factors
        return U @ L[:, : len(sigma)]

    @property
    def V(self) -> Array:
        """The right singular vectors (n_features, c), R folded in."""
        _, sigma, V, _, R = self._factors
        return V @ R[:, : len(sigma)]


def _batch(U: Array, sigma: Array, V: Array, Z: Array, D: Array, rank: int) -> Svd:
    """Algorithm 2: U and V cut to `rank` columns, sigma not cut, so that the caller sees what is lost."""
    c = len(sigma)
    UtZ, Q_Z, R_Z = _split(U, Z)  # line 1
    VtD, Q_D, R_D = _split(V, D)  # line 2
    K = np.vstack([UtZ, R_Z]) @ np.vstack([VtD, R_D]).T  # line 3
    K[np.arange(c), np.arange(c)] += sigma
    L, sigma, R = _svd(K)  # line 4
    n = min(rank, len(sigma))
    U = U @ L[:c, :n] + Q_Z @ L[c:, :n]  # line 5
    V = V @ R[:c, :n] + Q_D @ R[c:, :n]  # line 6
    return _restore(U, sigma, V)


def _split(U: Array, X: Array) -> tuple[Array, Array, Array]:
    """C, Q, R with X = U C + Q R and [U Q] orthonormal; Q has a column per direction that does not vanish."""
    n_features, c = U.shape
    norms = np.linalg.norm(X, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    P = np.asfortranarray(X / scale)  # so that tolerances are relative to each vector
    C = U.T @ P
    P -= U @ C
    again = U.T @ P
    P -= U @ again
    Q, R = linalg.qr(P, mode="economic", overwrite_a=True, check_finite=False)
    C += again
    if c + R.shape[1] > n_features or np.abs(np.diag(R)).min(initial=np.inf) < CAREFUL:
        # P = Q R and R = rotation R_1 pivot' is the pivoted QR of P, at the price of a small one.
        rotation, R_1, pivot = linalg.qr(R, mode="economic", pivoting=True, check_finite=False)
        n = min(n_features - c, np.count_nonzero(np.abs(np.diag(R_1)) > DROP))
        R = R_1[:n, np.argsort(pivot)]
        Q = Q @ rotation[:, :n]
        overlap = U.T @ Q  # Q R = U (overlap R) + (Q - U overlap) R
        C += overlap @ R
        Q, R_2 = linalg.qr(Q - U @ overlap, mode="economic", overwrite_a=True, check_finite=False)
        R = R_2 @ R
    return C * scale, Q, R * scale


def _svd(K: Array) -> tuple[Array, Array, Array]:
    """L, sigma, R with K = L diag(sigma) R'; L and R square. Of the two LAPACK drivers, the fast one may fail."""
    if 0 in K.shape:
        return np.eye(K.shape[0]), np.zeros(0), np.eye(K.shape[1])
    try:
        L, sigma, Rt = linalg.svd(K, check_finite=False)
    except linalg.LinAlgError:
        L, sigma, Rt = linalg.svd(K, check_finite=False, lapack_driver="gesvd")
    return L, sigma, Rt.T


def _restore(U: Array, sigma: Array, V: Array) -> Svd:
    """Orthonormalise U and V again if rounding has piled up, without changing U diag(sigma) V'."""
    n = U.shape[1]
    if max(np.abs(X.T @ X - np.eye(n)).max(initial=0.0) for X in (U, V)) < DRIFT:
        return U, sigma, V
    Q_U, R_U = linalg.qr(U, mode="economic", check_finite=False)
    Q_V, R_V = linalg.qr(V, mode="economic", check_finite=False)
    L, head, R = _svd((R_U * sigma[:n]) @ R_V.T)
    return Q_U @ L, np.concatenate([head, sigma[n:]]), Q_V @ R


def _one(
    factors: RotatedSvd, z: Array, d: Array, rank: int, truncate: bool, stores: Stores = (None, None)
) -> RotatedSvd:
    """Algorithm 3: if `truncate`, U and V are cut to `rank` columns; sigma is not, as in `_batch`."""
    U, sigma, V, L, R = factors
    m, p, p_norm = _residual(U, z)  # lines 1-2
    n, q, q_norm = _residual(V, d)  # lines 3-4
    K = np.outer(np.append(L.T @ m, p_norm), np.append(R.T @ n, q_norm))  # line 5
    K[np.arange(len(sigma)), np.arange(len(sigma))] += sigma
    L_next, sigma, R_next = _svd(K[: len(m) + p.shape[1], : len(n) + q.shape[1]])  # line 6
    L = linalg.block_diag(L, np.eye(p.shape[1])) @ L_next  # line 7
    R = linalg.block_diag(R, np.eye(q.shape[1])) @ R_next  # line 8
    U, V = _append(U, p, stores[0]), _append(V, q, stores[1])  # lines 17-18
    if truncate:
        c = min(rank, len(sigma))
        U, sigma, V = _restore(U @ L[:, :c], sigma, V @ R[:, :c])
        U, V = _append(U[:, :0], U, stores[0]), _append(V[:, :0], V, stores[1])
        L, R = np.eye(c), np.eye(c)
    return U, sigma, V, L, R


def _append(U: Array, p: Array, store: Array | None) -> Array:
    """[U p], column-major. With a `store` (rows hold U's columns), p is written there and U not copied."""
    if store is None:
        return np.vstack([U.T, p.T]).T
    c = U.shape[1] + p.shape[1]
    store[U.shape[1] : c] = p.T
    return store[:c].T


def _residual(U: Array, z: Array) -> tuple[Array, Array, float]:
    """U'z, then z's residual as a unit column and its norm; no column if nothing but rounding is left."""
    m = U.T @ z
    p = z - U @ m
    again = U.T @ p
    p -= U @ again
    norm = float(np.linalg.norm(p))
    if U.shape[1] == len(z) or norm <= DROP * np.linalg.norm(z):
        return m + again, np.zeros((len(z), 0)), 0.0
    return m + again, p[:, None] / norm, norm


def _batch_as_printed(U: Array, sigma: Array, V: Array, Z: Array, D: Array) -> Svd:
    c = len(sigma)
    Q_Z, R_Z = linalg.qr(Z - U @ (U.T @ Z), mode="economic")
    Q_D, R_D = linalg.qr(D - V @ (V.T @ D), mode="economic")
    K = np.vstack([U.T @ Z, R_Z]) @ np.vstack([V.T @ D, R_D]).T
    K[:c, :c] += np.diag(sigma)
    L, sigma, R = _svd(K)
    return np.hstack([U, Q_Z]) @ L, sigma, np.hstack([V, Q_D]) @ R


def _one_as_printed(factors: RotatedSvd, z: Array, d: Array, rank: int) -> RotatedSvd:
    U, sigma, V, L, R = factors
    c = len(sigma)
    m = L.T @ (U.T @ z)
    p = z - U @ (L @ m)
    n = R.T @ (V.T @ d)
    q = d - V @ (R @ n)
    p_norm, q_norm = np.linalg.norm(p), np.linalg.norm(q)
    K = np.outer(np.append(m, p_norm), np.append(n, q_norm))
    K[:c, :c] += np.diag(sigma)
    L_next, sigma, R_next = _svd(K)
    L = linalg.block_diag(L, 1.0) @ L_next
    R = linalg.block_diag(R, 1.0) @ R_next
    p = p if p_norm <= PRINTED_EPSILON else p / p_norm  # only now, after K has used the norm
    q = q if q_norm <= PRINTED_EPSILON else q / q_norm
    U, V = np.column_stack([U, p]), np.column_stack([V, q])
    if len(L) >= 2 * rank:
        U, sigma, V = (U @ L)[:, :rank], sigma[:rank], (V @ R)[:, :rank]
        L, R = np.eye(rank), np.eye(rank)
    return U, sigma, V, L, R
