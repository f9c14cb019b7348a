"""The contract that every estimator keeps, as a public test suite.

``check_estimator(factory)`` runs all of it on your own estimator; the library's tests run it on every entry of
``tlstd.estimators.registry``. ``CHECKS`` has the single checks, for use with ``pytest.mark.parametrize``. What they ask
for is in their docstrings: :mod:`~tlstd.checks.behaviour` for undisturbed use, :mod:`~tlstd.checks.layouts` for
arrays of every make, :mod:`~tlstd.checks.reliability` for interrupts, exceptions, threads and copies. The last three
kinds run in forked children, where there is ``os.fork``: an estimator that crashes takes nothing with it.
"""

from __future__ import annotations

from tlstd.checks import behaviour, layouts, reliability
from tlstd.checks.data import Check as Check
from tlstd.checks.data import Factory as Factory

CHECKS: tuple[Check, ...] = (*behaviour.CHECKS, *layouts.CHECKS, *reliability.CHECKS)
"""All checks. Each takes a factory and raises AssertionError with an explanation."""


def check_estimator(factory: Factory) -> None:
    """Raise AssertionError with an explanation if what ``factory`` makes breaks the contract.

    Parameters
    ----------
    factory : callable
        ``factory(n_features)`` returns a fresh estimator with fixed parameters.

    Example
    -------
    >>> from tlstd import TD
    >>> from tlstd.checks import check_estimator
    >>> check_estimator(lambda n_features, **options: TD(n_features, step_size=0.1, lambda_=0.5, **options))
    """
    for check in CHECKS:
        if check not in reliability.IN_CHILDREN:
            check(factory)
    reliability.check_together(factory)
