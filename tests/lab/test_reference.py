"""The corrected Algorithms 1-4 against dense matrices and batch LSTD, and the printed ones failing there."""

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg
from tlstd_lab import reference
from tlstd_lab.reference import ReferenceTLSTD, compute_weights, update_svd_batch, update_svd_one

from tlstd.errors import InvalidInputError, InvalidParameterError

Array = NDArray[np.float64]
Factors = TypeVar("Factors", bound=tuple[Array, ...])
Sample = tuple[Array, float, Array, float, float, float]  # x, reward, x_next, discount, trace_discount, rho


def empty(n_features: int) -> tuple[Array, Array, Array]:
    return np.zeros((n_features, 0)), np.zeros(0), np.zeros((n_features, 0))


def dense(U: Array, sigma: Array, V: Array, L: Array | None = None, R: Array | None = None) -> Array:
    n = len(sigma)
    left = U if L is None else (U @ L)[:, :n]
    right = V if R is None else (V @ R)[:, :n]
    product: Array = (left * sigma) @ right.T
    return product


def orthogonality_error(*factors: Array) -> float:
    return max(float(np.linalg.norm(X.T @ X - np.eye(X.shape[1]))) for X in factors)


def relative_error(value: Array, truth: Array) -> float:
    return float(np.linalg.norm(value - truth) / np.linalg.norm(truth))


def frozen(factors: Factors) -> Factors:
    """Read-only, so that an update which works in place fails."""
    for array in factors:
        array.setflags(write=False)
    return factors


def random_stream(n_features: int, n_samples: int, seed: int) -> list[Sample]:
    """Episodes of 7 steps that end by termination or by a time limit, off-policy ratios."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples + 1, n_features))
    return [
        (
            X[t],
            float(X[t, 0] + rng.standard_normal()),
            X[t + 1],
            0.0 if t % 14 == 13 else 0.9,
            0.0 if t % 7 == 0 else 0.9,
            float(rng.uniform(0.5, 1.5)),
        )
        for t in range(n_samples)
    ]


def gap_stream(n_features: int, rank: int, n_samples: int, seed: int) -> list[Sample]:
    """Features of rank `rank`, up to noise: a spectral gap at `rank`."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples + 1, rank)) @ rng.standard_normal((rank, n_features))
    X += 1e-3 * rng.standard_normal(X.shape)
    return [(X[t], float(X[t].sum()), X[t + 1], 0.5, 0.9 if t else 0.0, 1.0) for t in range(n_samples)]


def mountain_car_rbf(n_samples: int, grid: int = 16, width: float = 0.12) -> list[Sample]:
    """Dense, redundant features along an energy-pumping car: what Algorithm 3 as printed breaks on."""
    rng = np.random.default_rng(5)
    centres = np.stack(np.meshgrid(*2 * [np.linspace(0, 1, grid)]), axis=-1).reshape(-1, 2)
    samples: list[Sample] = []
    position, velocity, trace_discount = -0.5, 0.0, 0.0

    def encode() -> Array:
        unit = np.array([(position + 1.2) / 1.8, (velocity + 0.07) / 0.14])
        features: Array = np.exp(-(((centres - unit) / width) ** 2).sum(axis=1))
        return features

    while len(samples) < n_samples:
        x = encode()
        force = 0.001 if velocity >= 0 else -0.001
        velocity = float(np.clip(velocity + force - 0.0025 * np.cos(3 * position), -0.07, 0.07))
        position = max(position + velocity, -1.2)
        goal = position >= 0.5
        samples.append((x, -1.0, encode(), 0.0 if goal else 0.99, trace_discount, 1.0))
        trace_discount = 0.99
        if goal:
            position, velocity, trace_discount = rng.uniform(-1.2, 0.5), rng.uniform(-0.07, 0.07), 0.0
    return samples


def traced(samples: list[Sample], lambda_: float) -> Iterator[tuple[Array, Array, float]]:
    """z, d, reward."""
    z = np.zeros_like(samples[0][0])
    for x, reward, x_next, discount, trace_discount, rho in samples:
        z = rho * (trace_discount * lambda_ * z + x)
        yield z, x - discount * x_next, reward


def batch_lstd(samples: list[Sample], lambda_: float, beta: float | None = None) -> tuple[Array, Array]:
    """A and w, from all samples at once."""
    z, d, reward = (np.array(column) for column in zip(*traced(samples, lambda_), strict=True))
    n = len(samples)
    gains = np.full(n, 1 / n) if beta is None else beta * (1 - beta) ** np.arange(n - 1.0, -1.0, -1.0)
    A = (z.T * gains) @ d
    return A, linalg.solve(A, (z.T * gains) @ reward)


def run(samples: list[Sample], rank: int, **options: Any) -> ReferenceTLSTD:
    model = ReferenceTLSTD(len(samples[0][0]), rank, **options)
    feed(model, samples)
    return model


def feed(model: ReferenceTLSTD, samples: list[Sample]) -> None:
    for x, reward, x_next, discount, trace_discount, rho in samples:
        model.update(x, reward, x_next, discount=discount, trace_discount=trace_discount, rho=rho)


# Algorithm 2


def nasty_blocks(n_features: int, n_blocks: int) -> Iterator[tuple[Array, Array]]:
    """Random blocks, among them zero, duplicate, dependent, wide, and badly scaled ones."""
    rng = np.random.default_rng(0)
    past = rng.standard_normal((n_features, 3))
    for i in range(n_blocks):
        Z, D = rng.standard_normal((2, n_features, (1, 2, 3, 5, n_features + 3)[i % 5]))
        kind = i % 9
        if kind == 1:
            Z[:, -1] = Z[:, 0]
            D[:, 0] = D[:, -1]
        elif kind == 2:
            Z[:, ::2] = 0
        elif kind == 3:
            Z = past @ rng.standard_normal((past.shape[1], D.shape[1]))
        elif kind == 4:
            D = past @ rng.standard_normal((past.shape[1], Z.shape[1])) + 1e-9 * D
        elif kind == 5:
            D[:] = 0
        elif kind == 6:
            Z *= np.logspace(-150, 0, Z.shape[1])
            D *= np.logspace(2, -8, D.shape[1])
        elif kind == 7:
            Z = Z[:, :1] + 1e-7 * Z
        past = Z if np.any(Z) else past
        yield Z, D


@pytest.mark.parametrize("n_features", [1, 4, 60])
def test_untruncated_batch_is_the_dense_matrix(n_features: int) -> None:
    U, sigma, V = empty(n_features)
    A, scale = np.zeros((n_features, n_features)), 0.0
    for Z, D in nasty_blocks(n_features, 50):
        U, sigma, V = update_svd_batch(*frozen((U, sigma, V, Z, D)), n_features)
        A += Z @ D.T
        scale = max(scale, float(np.linalg.norm(A)))
        assert np.linalg.norm(dense(U, sigma, V) - A) < 2e-13 * scale
        assert orthogonality_error(U, V) < 1e-13
        assert np.all(np.diff(sigma) <= 0)
    assert U.shape == V.shape == (n_features, n_features)  # the last blocks found no room for a direction
    np.testing.assert_allclose(sigma, linalg.svdvals(A), rtol=1e-12, atol=1e-13 * sigma[0])


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_split_finds_every_direction_and_no_noise(scale: float) -> None:
    """One random, one nearly its duplicate, one nearly in U, one in U, one zero: three directions."""
    rng = np.random.default_rng(13)
    U = linalg.qr(rng.standard_normal((50, 10)), mode="economic")[0]
    X = rng.standard_normal((50, 5))
    X[:, 1] = X[:, 0] + 1e-9 * X[:, 1]
    X[:, 2] = U @ rng.standard_normal(10) + 1e-10 * X[:, 2]
    X[:, 3] = U @ rng.standard_normal(10)
    X[:, 4] = 0
    for Y in (scale * X[:, :3], scale * X):
        C, Q, R = reference._split(U, Y)
        assert Q.shape == (50, 3)
        assert orthogonality_error(np.hstack([U, Q])) < 1e-14
        np.testing.assert_allclose(U @ C + Q @ R, Y, atol=1e-14 * scale)


def test_nothing_from_nothing() -> None:
    U, sigma, V = update_svd_batch(*empty(5), np.zeros((5, 3)), np.ones((5, 3)), 2)
    assert U.shape == V.shape == (5, 0)
    assert sigma.shape == (0,)
    start = update_svd_batch(*empty(5), np.eye(5)[:, :2], np.eye(5)[:, 1:3], 2)
    for k in (0, 1):
        after = update_svd_batch(*start, np.zeros((5, k)), np.zeros((5, k)), 2)
        np.testing.assert_allclose(dense(*after), dense(*start), atol=1e-15)


def test_one_truncation_is_the_best_approximation() -> None:
    rng = np.random.default_rng(1)
    X, Y, Z, D = rng.standard_normal((4, 50, 8))
    U, sigma, V = update_svd_batch(*update_svd_batch(*empty(50), X, Y, 8), Z, D, 8)
    L, exact, Rt = linalg.svd(X @ Y.T + Z @ D.T)
    assert U.shape == V.shape == (50, 8)
    np.testing.assert_allclose(sigma, exact[:8], rtol=1e-13)
    lost = np.linalg.norm(X @ Y.T + Z @ D.T - dense(U, sigma, V))
    assert lost == pytest.approx(np.linalg.norm(exact[8:]), rel=1e-12)  # Eckart-Young
    np.testing.assert_allclose(dense(U, sigma, V), (L[:, :8] * exact[:8]) @ Rt[:8], atol=1e-12)


def test_batch_stays_orthonormal_on_redundant_features() -> None:
    samples = mountain_car_rbf(500 * 12)
    vectors = [(z, d) for z, d, _ in traced(samples, 0.9)]
    U, sigma, V = empty(256)
    for start in range(0, len(vectors), 12):
        Z, D = (np.array(column).T for column in zip(*vectors[start : start + 12], strict=True))
        U, sigma, V = update_svd_batch(U, sigma * start / (start + 12), V, Z / (start + 12), D, 12)
        assert orthogonality_error(U, V) < 3e-13
    assert U.shape == (256, 12)


def test_thousands_of_updates_change_neither_matrix_nor_orthogonality() -> None:
    """A stays in a fixed 6-dimensional space: what re-orthonormalising loses would add up."""
    rng = np.random.default_rng(2)
    left, right = rng.standard_normal((2, 40, 6))
    U, sigma, V = empty(40)
    A = np.zeros((40, 40))
    for _ in range(4000):
        Z, D = left @ rng.standard_normal((6, 2)), right @ rng.standard_normal((6, 2))
        U, sigma, V = update_svd_batch(U, 0.99 * sigma, V, Z, D, 6)
        A = 0.99 * A + Z @ D.T
    assert orthogonality_error(U, V) < 1e-13
    assert relative_error(dense(U, sigma, V), A) < 1e-12


def test_printed_batch_never_truncates() -> None:
    rng = np.random.default_rng(3)
    U, sigma, V = empty(50)
    for n_blocks in range(1, 5):
        Z, D = rng.standard_normal((2, 50, 8))
        U, sigma, V = update_svd_batch(U, sigma, V, Z, D, 8, as_printed=True)
        assert U.shape == V.shape == (50, 8 * n_blocks)


def test_printed_batch_takes_noise_for_directions() -> None:
    rng = np.random.default_rng(4)
    Z, D = rng.standard_normal((2, 20, 5))
    U, sigma, V = update_svd_batch(*empty(20), Z, D, 5, as_printed=True)
    printed = update_svd_batch(U, sigma, V, Z, D, 5, as_printed=True)
    assert orthogonality_error(printed[0]) > 0.1
    corrected = update_svd_batch(U, sigma, V, Z, D, 5)
    assert orthogonality_error(corrected[0], corrected[2]) < 1e-14
    assert relative_error(dense(*corrected), 2 * Z @ D.T) < 1e-14


# Algorithm 3


@pytest.mark.parametrize("lambda_", [0.0, 0.9])
def test_one_is_batch_at_truncations(lambda_: float) -> None:
    n_features, rank = 40, 5
    one = *empty(n_features), np.zeros((0, 0)), np.zeros((0, 0))
    batch = empty(n_features)
    block: list[tuple[Array, Array]] = []
    for i, (z, d, _) in enumerate(traced(gap_stream(n_features, rank, 12 * rank, 6), lambda_), start=1):
        one = update_svd_one(*frozen(one), z, d, rank, truncate=i % rank == 0)
        block.append((z, d))
        if i % rank == 0:
            Z, D = (np.array(column).T for column in zip(*block, strict=True))
            batch = update_svd_batch(*batch, Z, D, rank)
            block = []
            assert one[0].shape == one[2].shape == (n_features, rank)
            np.testing.assert_allclose(one[1], batch[1], rtol=1e-9)
            assert relative_error(dense(*one), dense(*batch)) < 1e-9
            assert orthogonality_error(one[0], one[2]) < 1e-13


def test_one_is_the_dense_matrix_at_every_step() -> None:
    """Vanishing residuals on one side only, so that K is rectangular; then no room left."""
    rng = np.random.default_rng(7)
    n_features = 12
    Z, D = rng.standard_normal((2, 40, n_features))
    Z[3:6] = Z[:3]
    D[8:11] = 2 * D[7]
    Z[12] = D[13] = 0
    Z[15] = Z[14] + 1e-9 * Z[15]
    D[17] *= 1e-200
    factors = *empty(n_features), np.zeros((0, 0)), np.zeros((0, 0))
    A = np.zeros((n_features, n_features))
    rectangular = 0
    for i, (z, d) in enumerate(zip(Z, D, strict=True)):
        factors = update_svd_one(*frozen(factors), z, d, n_features, truncate=i % 9 == 8)
        U, sigma, V, L, R = factors
        rectangular += U.shape[1] != V.shape[1]
        A += np.outer(z, d)
        assert relative_error(dense(U, sigma, V, L, R), A) < 1e-13
        assert orthogonality_error(U, V, L, R) < 1e-13
        w = compute_weights(U, sigma, V, A[:, :3], rank=n_features, rcond=1e-10, L=L, R=R)
        np.testing.assert_allclose(w, linalg.pinv(A, rtol=1e-10) @ A[:, :3], atol=1e-9)
    assert rectangular > 3


def test_printed_one_loses_orthogonality_where_the_corrected_one_keeps_it() -> None:
    samples = mountain_car_rbf(400)
    for as_printed in (True, False):
        model = run(samples, 50, lambda_=0.9, mini_batch=False, as_printed=as_printed)
        error = orthogonality_error(model.U, model.V)
        assert error > 1 if as_printed else error < 1e-12


def test_printed_one_tests_its_tolerance_too_late() -> None:
    """K holds the norm of a residual below ε, and the basis gets that residual without its being normalised."""
    U, sigma = np.eye(3)[:, :1], np.array([1.0])
    z = d = np.array([1.0, 1e-6, 0.0])
    A = np.diag([1.0, 0.0, 0.0]) + np.outer(z, d)
    one = np.eye(1)
    U_1, sigma_1, V_1, L_1, R_1 = update_svd_one(U, sigma, U, one, one, z, d, 2, truncate=False, as_printed=True)
    assert np.linalg.norm(U_1[:, 1]) == pytest.approx(1e-6)
    assert np.linalg.norm(dense(U_1, sigma_1, V_1, L_1, R_1) - A) > 1e-7
    z_2 = np.array([1.0, 2e-5, 0.0])
    above = update_svd_one(U, sigma, U, one, one, z_2, z_2, 2, truncate=False, as_printed=True)
    assert np.linalg.norm(above[0][:, 1]) == pytest.approx(1.0)
    corrected = update_svd_one(U, sigma, U, one, one, z, d, 2, truncate=False)
    assert np.linalg.norm(dense(*corrected) - A) < 1e-15


def test_printed_one_truncates_at_twice_the_rank() -> None:
    model = ReferenceTLSTD(30, 4, lambda_=0.5, mini_batch=False, as_printed=True)
    columns = []
    for sample in random_stream(30, 13, 8):
        feed(model, [sample])
        columns.append(model.U.shape[1])
    assert columns == [1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5]


# Algorithm 4


def test_weights_invert_at_most_rank_values_above_the_cutoff() -> None:
    I = np.eye(4)  # noqa: E741
    sigma, b = np.array([8.0, 4.0, 2.0, 0.08]), np.array([8.0, 8.0, 8.0, 8.0])
    np.testing.assert_array_equal(compute_weights(I, sigma, I, b, rank=4, rcond=0.01), [1, 2, 4, 0])
    np.testing.assert_allclose(compute_weights(I, sigma, I, b, rank=4, rcond=0.0), [1, 2, 4, 100])
    np.testing.assert_array_equal(compute_weights(I, sigma, I, b, rank=2, rcond=0.0), [1, 2, 0, 0])
    both = compute_weights(I, sigma, I, np.stack([b, 2 * b], axis=1), rank=3, rcond=0.0)
    np.testing.assert_array_equal(both, [[1, 2], [2, 4], [4, 8], [0, 0]])
    np.testing.assert_array_equal(compute_weights(I, 0 * sigma, I, b, rank=4, rcond=0.0), np.zeros(4))
    np.testing.assert_array_equal(compute_weights(*empty(4), b, rank=4, rcond=0.01), np.zeros(4))


# Algorithm 1


@pytest.mark.parametrize("beta", [None, 0.5])
def test_two_states_by_hand(beta: float | None) -> None:
    """s1 -(reward 1)-> s2 -(reward 2)-> end, γ = 1/2, λ = 1: v = (2, 2); A = I/2 and b = (1, 1) as averages."""
    first, second, end = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.zeros(2)
    for mini_batch in (True, False):
        model = ReferenceTLSTD(2, 2, lambda_=1.0, mini_batch=mini_batch, beta=beta)
        np.testing.assert_array_equal(model.weights, [0, 0])
        model.update(first, 1.0, second, discount=0.5, trace_discount=0.0)
        # A is proportional to z d' with z = b = (1, 0), d = (1, -1/2): w = d / |d|^2, once it is seen
        np.testing.assert_allclose(model.weights, [0, 0] if mini_batch else [0.8, -0.4], atol=1e-15)
        model.update(second, 2.0, end, discount=0.0, trace_discount=0.5)
        np.testing.assert_allclose(model.weights, [2, 2], rtol=1e-14)
        A = [[0.5, 0], [0, 0.5]] if beta is None else [[0.25, 0.125], [0, 0.5]]
        np.testing.assert_allclose(dense(model.U, model.sigma, model.V), A, atol=1e-15)


@pytest.mark.parametrize("mini_batch", [True, False])
@pytest.mark.parametrize("beta", [None, 0.05])
@pytest.mark.parametrize(("n_features", "rank"), [(15, 15), (15, 40), (2, 3)])
def test_full_rank_is_batch_lstd(mini_batch: bool, beta: float | None, n_features: int, rank: int) -> None:
    samples = random_stream(n_features, 6 * rank + 1, 9)
    model = ReferenceTLSTD(n_features, rank, lambda_=0.8, mini_batch=mini_batch, rcond=1e-12, beta=beta)
    for n in range(1, len(samples) + 1):
        feed(model, samples[n - 1 : n])
        seen = n // rank * rank if mini_batch else n
        if n % 10 < 2 and seen >= 2 * n_features:
            A, w = batch_lstd(samples[:seen], 0.8, beta)
            assert relative_error(dense(model.U, model.sigma, model.V), A) < 1e-12
            assert relative_error(model.weights, w) < 1e-9
    assert model.truncation_gaps == [np.inf] * 6


@pytest.mark.parametrize("beta", [None, 0.1])
def test_one_sample_and_mini_batch_are_one_algorithm(beta: float | None) -> None:
    samples = gap_stream(40, 5, 60, 10)
    one = ReferenceTLSTD(40, 5, lambda_=0.5, mini_batch=False, beta=beta)
    batch = ReferenceTLSTD(40, 5, lambda_=0.5, mini_batch=True, beta=beta)
    for start in range(0, 60, 5):
        feed(one, samples[start : start + 5])
        feed(batch, samples[start : start + 5])
        assert relative_error(dense(one.U, one.sigma, one.V), dense(batch.U, batch.sigma, batch.V)) < 1e-9
        assert relative_error(one.weights, batch.weights) < 1e-9
    assert one.truncation_gaps[0] == batch.truncation_gaps[0] == np.inf
    assert min(one.truncation_gaps) > 10
    np.testing.assert_allclose(one.truncation_gaps[1:], batch.truncation_gaps[1:], rtol=1e-6)


def test_mini_batch_answers_as_of_its_last_buffer() -> None:
    samples = random_stream(10, 25, 11)
    model = run(samples[:20], 10, lambda_=0.5, mini_batch=True)
    w, sigma = model.weights, model.singular_values
    feed(model, samples[20:])
    np.testing.assert_array_equal(model.weights, w)
    np.testing.assert_array_equal(model.singular_values, sigma)
    with pytest.raises(ValueError, match="read-only"):
        model.weights[0] = 1.0


@pytest.mark.parametrize("mini_batch", [True, False])
def test_printed_weighting_misses_batch_lstd(mini_batch: bool) -> None:
    samples = random_stream(15, 60, 9)
    options = {"lambda_": 0.8, "mini_batch": mini_batch, "rcond": 1e-12}
    _, w = batch_lstd(samples, 0.8)
    assert relative_error(run(samples, 15, **options).weights, w) < 1e-9
    assert relative_error(run(samples, 15, **options, as_printed=True).weights, w) > 1


def test_printed_one_sample_by_hand() -> None:
    """t = 1, k = 1, β = 1/2: A gets √β z · √β β d = β² z d', b gets β z reward."""
    model = ReferenceTLSTD(1, 1, lambda_=0.0, mini_batch=False, as_printed=True)
    model.update(np.array([2.0]), 3.0, np.array([1.0]), discount=0.5, trace_discount=0.0)
    np.testing.assert_allclose(model.singular_values, [0.25 * 2 * 1.5])
    np.testing.assert_allclose(model.weights, [0.5 * 2 * 3 / 0.75])  # corrected: 3 / 1.5


@pytest.mark.parametrize(
    "wrong",
    [{"rank": 0}, {"n_features": 0}, {"lambda_": 1.5}, {"rcond": -1.0}, {"beta": 1.0}, {"lambda_": np.nan}],
)
def test_wrong_parameters_are_refused(wrong: dict[str, float]) -> None:
    options: dict[str, Any] = {"n_features": 3, "rank": 2, "lambda_": 0.5, "mini_batch": True} | wrong
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        ReferenceTLSTD(**options)


def test_wrong_input_leaves_the_model_unchanged() -> None:
    samples = random_stream(6, 30, 12)
    model = run(samples[:20], 3, lambda_=0.9, mini_batch=False)
    good, bad = np.ones(6), np.array([1.0, np.nan, 0, 0, 0, 0])
    for x, reward, x_next in ((bad, 1.0, good), (good, 1.0, bad), (good, np.inf, good), (good[:5], 1.0, good)):
        with pytest.raises(InvalidInputError):
            model.update(x, reward, x_next, discount=0.9, trace_discount=0.9)
    feed(model, samples[20:])
    untouched = run(samples, 3, lambda_=0.9, mini_batch=False)
    np.testing.assert_array_equal(model.weights, untouched.weights)
