"""``tlstd bench``: what the estimators cost, as ratios to other ways of doing the same, measured in one run.

A row is a function from a :class:`~tlstd_lab.bench.row.Bench` to its lines, and one line in
:data:`~tlstd_lab.bench.registry.PLACES`. Both sides of a ratio are timed in turn (:mod:`tlstd_lab.bench.timing`), in
CPU time, with one BLAS thread unless the row says otherwise.
"""
