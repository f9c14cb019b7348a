"""What each stored sample weighs, in the whole system and in those of several folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd.errors import InvalidInputError
from tlstd.linalg.samples import Samples
from tlstd.types import FloatArray

Masks = tuple[NDArray[np.int16], NDArray[np.int16], FloatArray, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Which samples are held out from which systems, and where traces are cut.

    Parameters
    ----------
    fold : (N,) integers
        The number >= 0 of each kept sample's fold. In the system of fold f the samples of fold f weigh nothing.
    cut : (N,) bool
        Where the trace does not carry over from the sample before, in all systems.
    """

    fold: NDArray[np.integer[Any]]
    cut: NDArray[np.bool_]


class SampleWeights:
    """ω_t of the samples and of the old part; and, with folds, which weigh nothing in which system.

    Parameters
    ----------
    samples, beta, folds : as in :class:`~tlstd.linalg.sample_operator.SampleOperator`

    Attributes
    ----------
    of_chunk : list of arrays
        ω_t of the samples, chunk by chunk: 1/T, or β(1-β)^{T-1-t}.
    old_weight : float
        The sum of the weights of the samples that were folded.
    """

    def __init__(self, samples: Samples, beta: float | None, folds: HeldOut | None) -> None:
        self.samples, self.beta, self.folds = samples, beta, folds
        self._old_scale, self.old_weight = self._weigh_old()
        size = min(samples.chunk_size, samples.n_kept)
        self.of_chunk = self._all_weights(np.full(size, 1.0 / max(1, samples.n_samples)))
        if folds is not None:
            self._fold = folds.fold.astype(np.int16)
            self._fold_weights = self._weigh_folds(folds)

    def _all_weights(self, equal: FloatArray) -> list[FloatArray]:
        """ω_t of the samples, chunk by chunk; ``equal`` are those of a whole chunk without forgetting."""
        samples = self.samples
        counts = [samples.count(c) for c in range(len(samples.chunks))]
        if self.beta is None:
            return [equal[:count] for count in counts]
        oldest = [samples.n_kept - 1 - c * samples.chunk_size for c in range(len(counts))]
        ages = (first - np.arange(float(count)) for first, count in zip(oldest, counts, strict=True))
        return [self.beta * (1.0 - self.beta) ** age for age in ages]

    def _weigh_old(self) -> tuple[float, float]:
        """By what an old part is multiplied, and the sum of its samples' weights."""
        samples, beta = self.samples, self.beta
        if samples.old is None:
            return 0.0, 0.0
        if beta is None:
            return samples.n_left / samples.n_samples, samples.n_left / samples.n_samples
        scale = (1.0 - beta) ** samples.n_kept
        return scale, scale - (1.0 - beta) ** samples.n_samples

    def _weigh_folds(self, folds: HeldOut) -> FloatArray:
        """Σ ω_t of each fold."""
        n_kept = self.samples.n_kept
        if folds.fold.shape != (n_kept,) or folds.cut.shape != (n_kept,) or (n_kept and folds.fold.min() < 0):
            raise InvalidInputError(
                f"folds have shapes {folds.fold.shape} and {folds.cut.shape}: they need one number >= 0 for each of "
                f"the {n_kept} samples kept"
            )
        weights = np.concatenate([np.zeros(0), *self.of_chunk])
        return np.bincount(folds.fold, weights=weights).astype(np.float64, copy=False)

    def masks(self, systems: NDArray[np.integer[Any]] | None, k: int) -> Masks:
        """What the kernels take, for all samples."""
        no_fold, no_cut = np.zeros(0, dtype=np.int16), np.zeros(0, dtype=np.bool_)
        if (systems is None) != (self.folds is None) or (systems is not None and len(systems) != k):
            raise InvalidInputError(
                f"systems is {systems} with {k} column(s): name one fold a column if, and only if, there are folds"
            )
        if self.folds is None or systems is None:
            return no_fold, no_fold, np.zeros(0), no_cut
        numbers = np.asarray(systems, dtype=np.int16)
        total = self._fold_weights.sum() + self.old_weight
        held_out = np.array([self._fold_weights[f] if f >= 0 else 0.0 for f in numbers])
        scales = total / np.where(held_out < total, total - held_out, total)
        return self._fold, numbers, scales, self.folds.cut

    def part(self, masks: Masks, c: int, count: int) -> Masks:
        """The masks of chunk ``c``."""
        fold, numbers, scales, cut = masks
        start = c * self.samples.chunk_size
        return fold[start : start + count], numbers, scales, cut[start : start + count]

    def old_scales(self, masks: Masks) -> float | FloatArray:
        """By what the old part is multiplied in each column."""
        scales = masks[2]
        return self._old_scale * scales if scales.size else self._old_scale
