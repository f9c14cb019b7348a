"""The contract that every estimator keeps, as a public test suite.

``check_estimator(factory)`` runs all of it on your own estimator; the library's tests run it on every entry of
``tlstd.estimators.registry``. ``CHECKS`` has the single checks, for use with ``pytest.mark.parametrize``. What they ask
for is in their docstrings, in :mod:`~tlstd.checks.behaviour`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tlstd.checks.behaviour import CHECKS
from tlstd.checks.data import N_FEATURES, Check, Factory, reason

__all__ = ["CHECKS", "Check", "ContractError", "Factory", "Report", "check_estimator"]


@dataclass(frozen=True)
class Report:
    """What became of each check, by name; made by :func:`check_estimator`."""

    estimator: str
    """Name of the class."""
    passed: tuple[str, ...]
    passed_over: Mapping[str, str]
    """Checks of what the estimator does not offer, with the reason."""
    failed: Mapping[str, str]
    """With the reason."""

    def __str__(self) -> str:
        n = len(self.passed) + len(self.failed)
        lines = [f"{self.estimator}: {len(self.passed)} of {n} checks passed."]
        lines += [f"FAILED {name}: {why}" for name, why in self.failed.items()]
        lines += [f"Passed over {name}: {why}." for name, why in self.passed_over.items()]
        return "\n".join(lines)


class ContractError(AssertionError):
    """An estimator breaks the contract; the message lists every check that failed."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def check_estimator(factory: Factory) -> Report:
    """Run all checks on what ``factory`` makes, and raise :class:`ContractError` with all that fail.

    Parameters
    ----------
    factory : callable
        ``factory(n_features)`` returns a fresh estimator with fixed parameters.

    Returns
    -------
    Report
        Names of the checks that passed, and of those that were passed over because the estimator does not offer
        something: ``save``, ``update_and_predict``, ``n_targets``, …

    Example
    -------
    >>> from tlstd import TD
    >>> from tlstd.checks import check_estimator
    >>> print(check_estimator(lambda n_features, **options: TD(n_features, step_size=0.1, lambda_=0.5, **options)))
    TD: 20 of 20 checks passed.
    Passed over check_merge: its models refuse to be merged.
    """
    name = type(factory(N_FEATURES)).__name__
    passed: list[str] = []
    passed_over: dict[str, str] = {}
    failed: dict[str, str] = {}
    for check in CHECKS:
        missing, wrong = _tried(check, factory)
        if wrong is not None:
            failed[check.__name__] = wrong
        elif missing is not None:
            passed_over[check.__name__] = missing
        else:
            passed.append(check.__name__)
    report = Report(name, tuple(passed), passed_over, failed)
    if failed:
        raise ContractError(report)
    return report


def _tried(check: Check, factory: Factory) -> tuple[str | None, str | None]:
    """Why a check was passed over, and why it fails."""
    try:
        return check(factory), None
    except Exception as error:
        return None, reason(error)
