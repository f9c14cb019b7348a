"""Theorem 1 of the paper: its bound term by term, a sharper bound, and the steps of its proof as numbers.

``docs/experiments.md`` says what of the theorem holds. ``tlstd_lab.questions.theorem`` runs the experiments.

Example
-------
>>> from tlstd import boyan_chain
>>> A, b = boyan_chain(25).system(0.0)
>>> result = bound(A, b, A + 1e-3, b + 1e-3, 5, constant=None)
>>> result.error <= result.norm.total, result.error <= result.corrected.total
(True, True)
"""

from tlstd_lab.theorem.bounds import Bound, Comparison, Corrected, Reading, bound, compare
from tlstd_lab.theorem.proof import Step, proof_steps

__all__ = ["Bound", "Comparison", "Corrected", "Reading", "Step", "bound", "compare", "proof_steps"]
