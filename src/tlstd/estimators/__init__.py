"""Estimators: one algorithm per file, all of them listed in ``tlstd.estimators.registry``."""
