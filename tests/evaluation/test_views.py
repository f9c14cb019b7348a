"""Values over pairs of columns, as pages and JSON have them."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from tlstd import Log, evaluate


def test_a_map_has_the_first_column_first() -> None:
    """Each step ends and pays the first column, so that values rise with it and not with the second."""
    seen = np.random.default_rng(0).random((4_000, 2)) * [1.0, 10.0]
    log = Log.from_arrays(seen, seen[:, 0], terminated=np.ones(4_000, dtype=bool), columns=["a", "b"])
    views = evaluate(log, gamma=0.5, features="columns", estimators="KrylovLSTD").views
    assert views is not None
    (one,) = views.maps
    assert one.columns == ("a", "b")
    for edges, high in zip(one.edges, (1.0, 10.0), strict=True):
        assert_allclose(edges[[0, -1]], [0.0, high], atol=0.02 * high)
    middles = (one.edges[0][1:] + one.edges[0][:-1]) / 2.0
    assert_allclose(one.values, np.broadcast_to(middles[:, None], one.values.shape), atol=np.diff(middles).max())
