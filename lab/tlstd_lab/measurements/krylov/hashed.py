"""One product with A for 10⁶ samples with 30 of 10⁶ hashed features, over a bare compiled pass; and memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

from tlstd import KrylovLSTD, Transitions
from tlstd.core.threads import one_thread
from tlstd_lab.bench.timing import Side, interleaved, ratios, timed
from tlstd_lab.measurements.krylov.topic import DIMENSION, LAMBDA, Data, Topic
from tlstd_lab.tables import some, table


@numba.njit
def bare_pass(ptr, pos, v, p, out):  # type: ignore[no-untyped-def]
    """Σ v[pos] of every row, then out[pos] += that sum: what a product cannot do without."""
    for r in range(p.size):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        e = ptr[r]
        for _ in range((ptr[r + 1] - e) // 4):
            a += v[np.uint32(pos[e])]
            b += v[np.uint32(pos[e + 1])]
            c += v[np.uint32(pos[e + 2])]
            d += v[np.uint32(pos[e + 3])]
            e += 4
        for i in range(e, ptr[r + 1]):
            a += v[np.uint32(pos[i])]
        p[r] = (a + b) + (c + d)
    for r in range(p.size):
        s = p[r]
        for e in range(ptr[r], ptr[r + 1]):
            out[np.uint32(pos[e])] += s


def rows_of(chunks: Sequence[Any], counts: Sequence[int]) -> tuple[Any, Any]:
    """The rows x_t of all chunks as one CSR matrix with the store's own positions."""
    pieces, lengths = [], []
    for chunk, count in zip(chunks, counts, strict=True):
        last = int(chunk.row[count - 1]) + 1
        pieces.append(chunk.pos[: chunk.ptr[last]])
        lengths.append(np.diff(chunk.ptr[: last + 1]))
    ptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int32)
    return ptr, np.concatenate(pieces)


def measure() -> Data:
    n_samples = n_features = 10**6
    active = 30
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(0, n_features // active, (n_samples + 1, active)) * active + np.arange(active), axis=1)
    X = sp.csr_array(
        (np.ones(ids.size), ids.ravel(), np.arange(0, ids.size + 1, active)), shape=(n_samples + 1, n_features)
    )
    stream = Transitions.from_episodes([(X, rng.standard_normal(n_samples), False)], gamma=0.9)
    model = KrylovLSTD(n_features, lambda_=LAMBDA, dimension=DIMENSION)
    storing, _ = timed(lambda: model.update_many(stream))
    operator = model.operator()
    chunks = operator.samples.chunks
    ptr, pos = rows_of(chunks, [operator.samples.count(c) for c in range(len(chunks))])
    v, p, out = rng.standard_normal(operator.n), np.zeros(ptr.size - 1), np.zeros(operator.n)
    with one_thread():
        product, bare = interleaved(
            (
                Side("product", 1, lambda: partial(operator.matvec, v)),
                Side("bare pass", 1, lambda: partial(bare_pass, ptr, pos, v, p, out)),
            ),
            9,
        )
    return {
        "seconds": {t.name: list(t.cpu) for t in (product, bare)},
        "ratios": list(ratios(product, bare)),
        "storing": storing,
        "features_seen": operator.n,
        "bytes_per_sample": sum(chunk.nbytes for chunk in chunks) / n_samples,
        "documented": 4 * active + 36,
        "bytes_in_all": model.nbytes,
    }


def in_words(data: Data) -> str:
    product, bare = (1e3 * median(data["seconds"][name]) for name in ("product", "bare pass"))
    kept = f"{data['documented']} documented; {1e-6 * data['bytes_in_all']:.0f} MB with the features' index"
    rows = [
        ["a product", f"{product:.0f} ms", f"{some(data['ratios'])} of a bare pass ({bare:.0f} ms)", "≤ 1.5"],
        ["bytes a sample", f"{data['bytes_per_sample']:.1f}", kept, f"≤ {data['documented'] + 4}"],
        ["storing", f"{data['storing']:.2f} µs a sample", "", ""],  # seconds of 10⁶ samples
    ]
    return table(["", "", "against", "target"], rows)


TOPIC = Topic("hashed", measure, in_words)
