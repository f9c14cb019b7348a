"""One feature that is always 1: who follows whom in a log, without its features."""

from __future__ import annotations

import numpy as np

from tlstd.core.arrays import FloatArray


class Constant:
    """The same for every state."""

    n_features = 1

    def encode(self, state: object) -> FloatArray:
        """A one."""
        return np.ones(1)

    def encode_many(self, states: FloatArray) -> FloatArray:
        """A one for each."""
        return np.ones((len(states), 1))
